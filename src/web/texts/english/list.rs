//! The list of domains, and adding to it.

use super::Said;

texts! {
    // ---- The list ----
    add_domains = "Add domains";
    search_by_name = "Search by name";
    show = "Show";
    search = "Search";
    in_use = "In use";
    not_live_yet = "Not live yet";
    removed = "Removed";
    all = "All";
    nothing_found = "Nothing found";
    no_domain_fits = "No domain fits.";
    show_in_use = "Show all that are in use";
    no_domains = "No domains yet";
    no_domains_lead = "Bring a name of your own: you type it, we say which DNS records to publish, watch for them, and look after the certificate.";
    add_first = "Add the first one";
    list_caption = "Domains by name, with what each needs";
    domain = "Domain";
    state = "State";
    what_now = "What now";
    your_move_stop = "Your move.";
    first_page = "First page";
    next_page = "Next page";

    // ---- Adding ----
    n_added(n) = "{n} added";
    open_each = "Open each for the records to publish.";
    added = "Added";
    yours_already = "Yours already";
    from_typed(typed) = "from “{typed}”";
    n_not_added(n) = "{n} not added";
    correct_them = "They are still in the field below: correct them there and send it again.";
    not_added = "Not added";
    one_more_in_field = "1 more name is still in the field: 100 are taken at a time. Send it again for it.";
    more_in_field(n) = "{n} more names are still in the field: 100 are taken at a time. Send it again for the next.";
    visitors_try_both = "Visitors try both";
    with_and_without() = "People type a name with and without `www`. Add the other one, too:";
    add_these(names) = "Add {names}";
    which_names = "Which names?";
    more_names = "More names";
    tenant = "Tenant";
    names_label = "Names";
    names_help = "One a line, or with commas or blanks between them. Addresses of pages are fine.";
    names_example = "support.example.com";
    type_a_name = "Type at least one name, such as support.example.com.";
    no_such_tenant = "There is no tenant with this slug or id.";
    failed_here = "This failed on our side. The name is still in the field: try again in a moment.";
}
