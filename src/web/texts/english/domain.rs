//! A domain's page, its hand-off page, its history and its removal.

use super::Said;

texts! {
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
    import_paused = "The import that brought this name is paused";
    import_paused_by_operator = "The import that brought this name is paused by the operator";
    import_cancelled = "The import that brought this name was cancelled";
    open_import = "Open the import";
    claim_by_itself = "Claim this name by itself";
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
    certificate_held = "Is not ordered while the import that brought the name is held.";
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
    of_one_day = "It is good for one day.";
    one_of_days(days) = "1 of {days} days is over.";
    of_days(used, days) = "{used} of {days} days are over.";
    valid_from = "Valid from";
    valid_until = "Valid until";
    life_left = "Left of its life";
    life_left_is(percent, days) = "{percent} %, whole days: {days}";
    issuer = "Issuer";
    serial = "Serial";
    names = "Names";
    edges = "Edges";
    edges_serve(n, all) = "{n} of {all} serve it";
    edges_without(names) = "still without: {names}";
    renewal = "Renewal";
    renewal_why = "The certificate authority says why:";
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
    undo = "Changed your mind?";
    undo_lead(ends, full) = "The removal can be undone {ends} at the latest, until {full}. We look at your records; if they are still in place, visitors are served again with the certificate that was kept.";
    undo_button = "Undo the removal";
    undone = "The removal is undone. Edges are told right now.";
    remove_name(name) = "Remove {name}";
    remove_question(name) = "Remove {name}?";
    remove_at_once = "Visitors of this name are no longer served, at once.";
    remove_kept_back = "For 7 days the name is kept back: nobody else can take it over. Its certificate rests and is then destroyed.";
    remove_undo = "In those 7 days you can undo this on the page of the domain, without new records, as long as these are in place.";
    remove_anew = "After that you claim the name anew to use it again, with a new value to publish.";
    remove_dns = "Your DNS still points to us until you change it. Delete these records, best before anything else: a name that points to a service which no longer serves it is an invitation to strangers.";
    remove_unproven = "The claim is withdrawn. Nobody was served under this name, so nobody loses anything.";
    remove_value = "The value to publish ends with it; claiming the name again gives a new one.";
    remove_published = "If you published these records already, delete them.";
    keep_it = "Keep it";
}
