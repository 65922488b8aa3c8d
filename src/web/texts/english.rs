//! The list.

use std::fmt::Display;

use super::said::Said;

/// `key = "…"` is a text as it stands; `key() = "…"` one with markup; `key(value) = "…{value}…"` one with values.
macro_rules! texts {
    ($($key:ident $(($($value:ident),*))? = $text:literal;)*) => {
        $(texts!(@one $key $(($($value),*))? = $text);)*

        /// Every text with its key and the names of its values; none for one without markup.
        #[cfg(test)]
        pub(super) const ALL: &[(&str, &str, Option<&[&str]>)] = &[$((stringify!($key), $text, texts!(@names $(($($value),*))?)),)*];
    };
    (@one $key:ident = $text:literal) => {
        pub(in crate::web) const fn $key() -> &'static str {
            $text
        }
    };
    (@one $key:ident ($($value:ident),*) = $text:literal) => {
        pub(in crate::web) fn $key($($value: impl Display),*) -> Said {
            Said::new($text, vec![$((stringify!($value), $value.to_string())),*])
        }
    };
    (@names) => { None };
    (@names ($($value:ident),*)) => { Some(&[$(stringify!($value)),*]) };
}

texts! {
    // ---- Around every page ----
    product = "Nameplate";
    skip = "Skip to the content";
    main_navigation = "Main";
    breadcrumb = "Breadcrumb";
    fleet = "Fleet";
    domains = "Domains";
    add = "Add";
    import = "Import";
    back_to_application = "Back to the application";
    sign_out = "Sign out";
    get_help = "Get help";
    copy = "Copy";
    copied = "Copied";
    selected = "Selected";
    copied_aloud = "Copied to the clipboard";
    selected_aloud = "Selected: press Control and C to copy";
    looking_aloud = "We are looking right now.";
    failed_aloud = "That did not work. Load the page again.";
    away_aloud = "The server cannot be reached at the moment. Try again shortly.";

    // ---- Times ----
    in_a_moment = "in a moment";
    just_now = "just now";
    in_seconds(n) = "in {n} seconds";
    in_minutes(n) = "in {n} minutes";
    in_hours(n) = "in {n} hours";
    in_days(n) = "in {n} days";
    seconds_ago(n) = "{n} seconds ago";
    minutes_ago(n) = "{n} minutes ago";
    hours_ago(n) = "{n} hours ago";
    days_ago(n) = "{n} days ago";

    // ---- Where a claim stands ----
    awaiting_dns = "Waiting for DNS";
    awaiting_name = "Waiting for the name";
    queued = "Certificate under way";
    live = "Live";
    live_not_served = "Live, not served";
    releasing = "Being released";
    released = "Released";
    expired = "Ran out of time";
    withdrawn = "Withdrawn";
    your_move = "Your move";
    providers_move = "Your DNS provider’s move";
    our_move = "Our move";
    cas_move = "The certificate authority’s move";
    nothing_to_do = "Nothing to do";

    // ---- The domain's page ----
    page_title(name, state) = "{name}: {state}";
    in_dns = "in DNS:";
    looking_now = "We are looking right now; this page shows the result in a moment.";
    connected = "You are back from your DNS provider. What it set shows here once its name servers answer with it.";
    not_connected = "Your DNS provider did not set the records. You can try again, or enter them by hand.";
    open_name(name) = "Open {name}";
    check_now = "Check now";
    next_look = "next look";
    turn_is_next = "Its certificate is ordered in the coming round";
    turn_is_number(n) = "Its certificate order is number {n} in line";
    turn_expected = "expected";
    load_again = "Load this page again";
    to_see_changes = "to see what changed.";
    lights = "Ownership, routing, permission, certificate";

    // ---- Lights ----
    ownership = "Ownership";
    routing = "Routing";
    permission = "Permission";
    certificate = "Certificate";
    right = "Right";
    not_there_yet = "Not there yet";
    needs_change = "Needs a change";
    ours_to_solve = "Ours to solve";
    could_not_look = "Could not look";
    not_looked_yet = "Not looked yet";
    not_yet = "Not yet";
    nobody_looked = "Nobody has looked yet; the first look is on its way.";
    certificate_later = "Comes by itself once ownership, routing and permission are right.";
    certificate_waits = "Waits for its turn at the certificate authority.";
    certificate_ordered = "Is being ordered.";
    certificate_checked = "The certificate authority is checking the name.";
    certificate_signed = "The certificate authority is signing.";
    certificate_comes = "Was issued and is on its way.";
    certificate_retried = "The last order did not succeed and is tried again.";
    certificate_ended = "Has ended: visitors see a warning.";
    certificate_everywhere = "Valid, and served by every edge.";
    certificate_some(n, all) = "Valid, and served by {n} of {all} edges; the rest follow.";
    certificate_nowhere = "Valid; no edge serves it so far.";
    check_ownership = "Proof of ownership";
    check_routing = "The way to us";
    check_caa = "Permission for our certificate authority";
    check_delegation = "The challenge name";
    check_holding = "Nobody else holds the name";
    with_partner = "Add the other half, too: www for a bare domain, the bare domain for its www";
    redirect_partner = "Send visitors of that other half on to the name as typed, once it is served";
    check_preflight = "Requests reach us";
    expected = "Expected";
    observed = "Observed";
    nothing_seen = "nothing";
    begins_different = "differs: ";
    ends_different = " (end of the difference)";
    begins_missing = "missing: ";
    ends_missing = " (end of what is missing)";
    seen_by = "Seen by";
    what_to_do = "What to do";
    who_acts = "Whose move";
    looked = "Looked";
    looks_again = "We look again";
    until = "Until";
    if_nothing = "If nothing changes";
    code = "Code";
    as_expected = "as expected";
    not_as_expected = "not as expected";
    kept_seconds(n) = "kept for {n} s";
    kept_minutes(n) = "kept for {n} min";
    kept_hours(n) = "kept for {n} h";
    kept_days(n) = "kept for {n} days";
    old_gone = "Old answers are gone";

    // ---- Records ----
    records_to_publish = "Records to publish";
    records_in_place = "Records in place";
    records_to_keep = "Records to keep";
    stay_in_zone(zone) = "They stay in the DNS of *{zone}*.";
    enter_in_zone(zone) = "Enter these where the DNS of *{zone}* is managed.";
    hosted_at(provider, zone) = "Your DNS is hosted at *{provider}*: records are changed there, in *{zone}*.";
    menu = "The way there";
    neutral_panel = "Most panels want the short host; some want the full name; a zone file takes the line as it stands.";
    host = "Host";
    value = "Value";
    full_name = "Full name";
    zone_line = "Zone line";
    time_to_live = "TTL";
    proxy = "Proxy";
    proxy_off = "DNS only";
    leave_empty = "leave empty";
    zone_itself = "@ in most panels, empty in others";
    adds_zone(provider, zone) = "{provider} adds {zone} by itself.";
    with_dot = "With the dot at the end.";
    with_quotes = "With the quotation marks.";
    copy_field(field, n) = "Copy {field} of record {n}";
    proves = "proves that the name is yours";
    leads = "leads visitors to us";
    permits = "permits our certificate authority";
    keep() = "*Keep* this record for as long as the name is in use.";
    keep_until_live = "Needed until the name is live, and best kept after that.";
    zone_download = "Download as a zone file";
    zone_download_for(name) = "Records for {name}.";
    zone_download_keep = "Keep them for as long as the name is in use.";
    zone_download_load = "Whole names, so they load into any zone file as they stand.";
    connect_lead(provider) = "{provider} can enter these for you: you see there what is set, and agree.";
    connect_button(provider) = "Set up at {provider}";
    connect_leads_to(host) = "Leads to {host}";

    // ---- Handing off ----
    somebody_else = "Somebody else manages the DNS?";
    hand_off_lead = "Make a link to a page with these records and their live state. It needs no account, shows this domain only, and changes nothing.";
    hand_off_make = "Make a link to hand off";
    hand_off_link(made, ends, full) = "Made {made}, ends {ends} ({full})";
    take_back = "Take back";
    take_back_link(made) = "Take back the link made {made}";
    hand_off_title(name, state) = "DNS records for {name}: {state}";
    hand_off_you(zone, tenant) = "You were sent this page because you manage the DNS of *{zone}* for {tenant}. It shows what is needed and what is seen; nothing can be changed here.";
    hand_off_ends(ends, full) = "The link ends {ends}, on {full}.";
    nothing_to_publish = "There is nothing to publish for this name any more.";
    shared_title(name) = "A link to hand off {name}";
    link_ready = "The link is ready";
    link_send(name) = "Send it to whoever manages the DNS of {name}. It is shown this once.";
    link = "Link";
    copy_link = "Copy the link";
    link_shows(ends, full) = "Whoever has it sees the records and the state of this one domain, for as long as the link lasts: it ends {ends}, on {full}. You can take it back on the domain’s page.";
    back_to_domain = "Back to the domain";

    // ---- Certificate ----
    valid_certificate(name) = "A valid certificate for {name} on every edge";
    no_certificate = "no certificate so far";
    certificate_until(serial, until) = "certificate {serial}, valid until {until}";
    days_over = "Days of the certificate that are over";
    of_days(used, days) = "{used} of {days} days are over.";
    valid_from = "Valid from";
    valid_until = "Valid until";
    issuer = "Issuer";
    serial = "Serial";
    names = "Names";
    edges = "Edges";
    edges_serve(n, all) = "{n} of {all} serve it";
    edges_without(names) = "still without: {names}";
    by_public_name = "By the public name";
    met = "the certificate in use was met";
    not_met = "the certificate in use was not met";
    order = "Order";
    lane = "Lane";
    ca_said = "What the certificate authority said last";

    // ---- Timeline and history ----
    timeline = "Timeline";
    nothing_happened = "Nothing has happened yet.";
    nothing_before = "Nothing happened before that.";
    whole_history = "The whole history";
    history_of(name) = "History of {name}";
    by_whom(who) = "by {who}";
    you_in_portal = "you, in the portal";
    your_application = "your application";
    the_operator = "the operator";
    latest = "Latest";
    older = "Older";
    pages = "Pages";
    found_seen(check, code, seen) = "{check}: {code} — seen {seen}";
    yes = "yes";
    no = "no";

    // ---- Removing ----
    remove = "Remove";
    remove_lead = "You see what follows before anything happens.";
    remove_this = "Remove this domain…";
    on_its_way_out = "On its way out";
    delete_from_zone(zone) = "Delete these from the DNS of *{zone}*, if they are still there: a name that points to us without being served invites mistakes.";
    remove_name(name) = "Remove {name}";
    remove_question(name) = "Remove {name}?";
    remove_at_once = "Visitors of this name are no longer served, at once.";
    remove_kept_back = "For 7 days the name is kept back: nobody else can take it over. Its certificate rests and is then destroyed.";
    remove_anew = "To use the name again you claim it anew, with a new value to publish.";
    remove_dns = "Your DNS still points to us until you change it. Delete these records, best before anything else: a name that points to a service which no longer serves it is an invitation to strangers.";
    remove_unproven = "The claim is withdrawn. Nobody was served under this name, so nobody loses anything.";
    remove_value = "The value to publish ends with it; claiming the name again gives a new one.";
    remove_published = "If you published these records already, delete them.";
    keep_it = "Keep it";

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

    // ---- Imports ----
    imports = "Imports";
    import_domains = "Import domains";
    imports_lead = "A file with one name a row. Check it first: nothing is claimed by that, and you see what would become of every row and how long it takes.";
    send_file = "Send a file";
    tenant_of_rest = "Tenant of the rows that name none";
    tenant_of_rest_help = "By slug or id; leave it empty when every row names its tenant.";
    tenant_unknown = "There is no tenant with this id or slug.";
    add_tenants = "Add tenants that are named and not there";
    only_check = "Only check it";
    claim_at_once = "Claim the names at once";
    file = "File";
    file_columns() = "CSV in UTF-8 whose first line names the columns: `hostname`.";
    file_columns_tenant() = "CSV in UTF-8 whose first line names the columns: `hostname`, `tenant`.";
    file_rest(most) = "Or one JSON object a line. At most {most} rows. A row sent twice does no harm.";
    choose_file = "Choose a file.";
    send = "Send";
    imports_caption = "Imports, the newest first";
    rows = "Rows";
    sent = "Sent";
    older_imports = "Older imports";

    // ---- Where an import stands ----
    arriving = "Arriving";
    being_checked = "Being checked";
    being_imported = "Being imported";
    paused = "Paused";
    checked = "Checked";
    imported = "Imported";
    cancelled = "Cancelled";
    one_row_arrived(n) = "{n} row has arrived so far. Nothing counts until the file is whole.";
    rows_arrived(n) = "{n} rows have arrived so far. Nothing counts until the file is whole.";
    of_one_row_judged(n, all) = "{n} of {all} row have their verdict.";
    of_rows_judged(n, all) = "{n} of {all} rows have their verdict.";
    held_at(n, all) = "Held at row {n} of {all}. Claims that were made go their way.";
    given_up_at(n, all) = "Given up at row {n} of {all}. Claims that were made stay; each can be removed.";
    was_a_check = "Nothing was claimed: this was a check.";
    one_would_be_claimed(n) = "{n} name would be claimed.";
    n_would_be_claimed(n) = "{n} names would be claimed.";
    one_claimed_one_yours(claimed, yours) = "{claimed} name is claimed, {yours} was yours already.";
    one_claimed_n_yours(claimed, yours) = "{claimed} name is claimed, {yours} were yours already.";
    n_claimed_one_yours(claimed, yours) = "{claimed} names are claimed, {yours} was yours already.";
    n_claimed_n_yours(claimed, yours) = "{claimed} names are claimed, {yours} were yours already.";
    every_row_taken = "Every row was taken.";
    one_row_not_taken(n) = "{n} row was not taken; below is why.";
    rows_not_taken(n) = "{n} rows were not taken; below is why.";
    start_import = "Claim these names now";
    resume_import = "Go on";
    pause_import = "Pause";
    cancel_import = "Cancel the rest";

    // ---- Verdicts on rows ----
    verdicts_picture = "Verdicts; the table below says the same";
    verdicts_caption = "Rows by verdict";
    verdict = "Verdict";
    claimed = "Claimed";
    would_be_claimed = "Would be claimed";
    repeated = "Repeated";
    not_taken = "Not taken";
    verdict_waits = "Waiting for a verdict";
    refused_rows = "Rows that were not taken";
    first_refused(n) = "The first 50 of {n}; the file below has all.";
    line_of_file(n) = "Line {n}";
    nothing_readable = "(nothing readable)";
    probably_meant(name) = "Probably {name} is meant.";
    take_verdicts = "Take the verdicts away";
    take_verdicts_lead = "Every row with its verdict. Correct what was not taken and send the file again: what was taken stays as it is.";
    all_rows_csv = "All rows as CSV";
    refused_rows_csv = "Rows not taken as CSV";
    all_rows_ndjson = "All rows as NDJSON";

    // ---- An import's claims and its plan ----
    claims_stand = "Where its claims stand";
    claims_caption = "Claims that this import made, by state";
    publish_these = "Publish these records; whoever owns the DNS can take them as one file:";
    records_zone_file = "Records as a zone file";
    records_csv = "Records as CSV";
    limits_plan = "What the limits make of it";
    to_order(orders, domains) = "{orders} certificates to order for names under {domains} registered domains.";
    to_order_behind(orders, domains, ahead) = "{orders} certificates to order for names under {domains} registered domains, behind {ahead} that wait already.";
    last_order(ago, full) = "If every name is set up right and nothing else comes between, the last is ordered {ago}, at {full}.";
    orders_picture = "Orders over time as planned; the table below says the same";
    orders_span(starts, ends, n) = "From {starts} to {ends}: {n} orders.";
    dot_is_now(live) = "The dot is now: {live} live.";
    same_as_table = "The same as a table";
    orders_caption = "Orders made by then";
    orders_by = "By";
    orders = "Orders";
    slow_domains = "Registered domains that make names wait";
    slow_domains_why = "The certificate authority issues so many certificates a week under one registered domain.";
    slow_domains_all = "These have more names than that:";
    slow_domains_first(n) = "These have more names than that; the slowest 20 of {n}:";
    registered_domain = "Registered domain";
    at_once = "At once";
    last_at = "The last at";

    // ---- Getting in and out ----
    sign_in = "Sign in";
    domains_of(tenant) = "Domains of {tenant}";
    link_signs_in = "This link signs you in, once, to manage your domains.";
    go_on = "Continue";
    operators_sign_in = "Operators’ sign-in";
    operators_token = "Operator’s token";
    not_an_operator = "You manage the domains of one customer? Open this portal from the application instead: its link signs you in.";
    signed_out = "Signed out";
    you_are_signed_out = "You are signed out";
    sign_in_again = "Sign in again";
    come_back = "To come back, open the page of your domains in your application.";
    your_domains = "Your domains";
    running = "Nameplate is running";
    start_lead = "You manage your domains here. Open this page from your application: its link signs you in.";
    to_the_start = "To the start";
    link_ended = "This link has ended";
    link_taken_back = "This link was taken back";
    link_nowhere = "This link leads nowhere";
    link_used = "This link was used already";
    hand_off_ended = "It was made for a limited time, which is over.";
    hand_off_revoked = "Whoever sent it to you does not share these records any more.";
    hand_off_unknown = "It may have been cut off on its way to you.";
    hand_off_todo = "Ask whoever sent it to you for a new one: making it takes them a moment.";
    portal_used = "Each link signs in once, so that nobody can use it after you.";
    portal_ended = "Links that sign in are good for a short time only.";
    portal_revoked = "It does not sign in any more.";
    portal_unknown = "It may have been cut off when it was copied.";
    portal_todo = "Go back to your application and open the page of your domains from there: it makes a fresh link.";
    back_title = "Back from your DNS provider";
    back_lead = "You can close this page. The one you came from shows by itself what is seen of the records.";
}
