//! The operators' pages: the fleet, lists, the queue, the budget, expiry, edges, tenants.

use super::Said;
pub(in crate::web) use super::operator_domain::*;

texts! {
    // ---- Around them ----
    fleet = "Fleet";
    domains = "Domains";
    tenants = "Tenants";
    queue = "Queue";
    budget = "Budget";
    expiry = "Expiry";
    edges = "Edges";
    find_hostname = "Find a hostname";
    search = "Search";
    next_page = "Next page";
    nothing_here = "Nothing here.";
    more(n) = "and {n} more";
    none = "none";

    // ---- Whose move, and where claims stand ----
    ours = "Ours";
    cas = "The CA’s";
    providers = "A DNS provider’s";
    tenants_own = "The tenant’s";
    nobodys = "Nobody’s";
    our_move = "Our move";
    cas_move = "The CA’s move";
    providers_move = "A DNS provider’s move";
    tenants_move = "The tenant’s move";
    nobodys_move = "Nobody’s move";
    served = "Served";
    under_way = "Under way";
    not_judged = "This release has not judged this row yet.";

    // ---- The fleet on one page ----
    one_open_and_served(served) = "1 open claim, {served} served";
    open_and_served(open, served) = "{open} open claims, {served} served";
    counted_at = "Counted";
    needs_somebody = "Needs somebody now";
    one_ended = "1 name is live with a certificate that has ended.";
    n_ended(n) = "{n} names are live with a certificate that has ended.";
    one_edge_missing(wanted) = "1 edge counts and {wanted} must: nothing is ordered until they do.";
    edges_missing(counted, wanted) = "{counted} edges count and {wanted} must: nothing is ordered until they do.";
    only_edge_in_trouble = "The only edge is silent or left behind.";
    one_edge_in_trouble(all) = "1 of {all} edges is silent or left behind.";
    edges_in_trouble(n, all) = "{n} of {all} edges are silent or left behind.";
    one_not_served = "1 certificate is on an edge that does not serve it.";
    not_served(n) = "{n} certificates are on an edge that does not serve them.";
    one_name_paused(issuer) = "{issuer} paused 1 name or more until somebody visits its page.";
    names_paused(issuer, n) = "{issuer} paused {n} names or more until somebody visits its page.";
    nothing_before(issuer, at) = "{issuer} lets nothing through before {at}.";
    no_account_yet(issuer) = "{issuer} has given us no account yet";
    no_account_because(issuer, why) = "{issuer} has given us no account yet: {why}";
    whose_move_it_is = "Whose move it is";
    no_open_claim() = "No claim is open. The first one is made with `POST /api/v1/domains` or `nameplate domain add`.";
    open_by_move = "Open claims by whose move it is";
    whose_move = "Whose move";
    share_of_all = "Share";
    where_claims_stand = "Where claims stand";
    claims_by_state = "All claims by their state";
    state = "State";
    picture = "Picture";
    stuck_longest = "Stuck longest, and why";
    nothing_stuck = "Nothing is under way or stuck.";
    one_more_reason = "1 more reason, with fewer domains; it is in the lists by whose move it is.";
    more_reasons(n) = "{n} more reasons, each with fewer domains; they are in the lists by whose move it is.";
    still_to_spend = "What the CAs still let us spend";
    no_ledger = "No issuer keeps a ledger.";
    budget_caption = "Budget by issuer, limit and key";
    issuer_and_limit = "Issuer and limit";
    edges_count(counted, all) = "{counted} of {all} count";
    ending_not_renewed = "Certificates ending, not renewed";
    within_days(days) = "within {days} days";
    percent(n) = "{n} %";
    bar(name, n) = "{name}: {n}";

    // ---- Lists of domains ----
    search_lead = "By hostname: its beginning at any label, in either spelling. A domain’s or tenant’s id, and a slug, are found too.";
    none_found = "No hostname begins so, at any of its labels.";
    found = "Hostnames that begin so, at any of their labels.";
    longest_first(sentence) = "{sentence} Longest first.";
    longest_first_why = "Longest first, with what stands in the way.";
    hostname = "Hostname";
    tenant = "Tenant";
    tenant_found = "Tenant:";
    claim = "Claim";
    stands_at = "Stands at";
    since = "Since";
    since_when = "since";
    certificate_until = "Certificate until";

    // ---- The queue ----
    queue_lead = "Positions and times are the dispatcher’s own: what this page says is what will happen if nothing else comes.";
    looked_at = "Looked at";
    no_issuer = "No issuer is configured.";
    places_of(n) = "Places in queue {n}";
    first_places = "The first places";
    position = "Position";
    lane = "Lane";
    expected = "Expected";
    next = "next";
    next_round = "next round";
    not_known = "not known";
    waits_for(limit) = "waits for: {limit}";
    n_wait(issuer, n) = "*{issuer}*: {n} wait";
    n_in_lane(n, lane) = "{n} in lane {lane}";
    n_held_back(n) = "{n} held back until their checks pass";
    by_imports_paused_by_tenants = "held back by imports that tenants paused";
    by_imports_paused_by_operators = "held back by imports that the operator paused";
    by_imports_cancelled = "held back by imports that were cancelled";
    no_account_tag = "no account yet";
    paused_until = "paused until";
    last_expected = "the last that was looked at is expected";

    // ---- The budget ----
    budget_lead = "What the CAs still let us spend, when it comes back, and who waits for it.";
    not_in_use = "no longer in use";
    nothing_until = "nothing before";
    trouble = "Trouble";
    no_account = "No account";
    nothing_kept = "Nothing is kept of it: no limit is configured, or nothing was spent.";
    limits_of(issuer) = "Limits of {issuer}";
    limits_of_number(n) = "Limits of issuer {n}";
    limit = "Limit";
    left = "Left";
    next_one = "Next";
    full_again = "Full again";
    waiting = "Waiting";
    left_of(left, all) = "{left} of {all}";
    left_of_open(left, all, open) = "{left} of {all}, {open} open";
    not_configured = "No such limit is configured, and the CA refuses for it:";
    cas_page = "The CA’s page";
    used_up_by_others = "Used up by others: the CA refused where our own count had room.";
    paused_by_ca = "Paused by the CA until somebody visits its page.";
    ca_probed(issuer) = "{issuer} failed often; one order at a time finds out whether it works again.";
    ca_probed_last(issuer, last) = "{issuer} failed often; one order at a time finds out whether it works again. Last: {last}";
    ca_left_alone(issuer, until) = "{issuer} failed often and is left alone until {until}.";
    ca_left_alone_last(issuer, until, last) = "{issuer} failed often and is left alone until {until}. Last: {last}";
    ca_halted(issuer, why) = "The account at {issuer} cannot be used: {why}. Nothing is ordered there until you have seen to it: nameplate issuer test {issuer}";

    // ---- Expiry ----
    expiry_lead = "Certificates in use by the day on which they end. A renewed name has left its day: what stands here is not renewed.";
    days_in_utc = "days are in UTC";
    ended_before_today = "ended before today";
    next_days(n) = "The next {n} days";
    each_day_picture(most) = "Certificates ending each day, {most} on the fullest; the table below has the numbers";
    today = "today";
    n_days(n) = "{n} days";
    by_day = "By day";
    day = "Day";
    certificates = "Certificates";
    none_in_30 = "None in the next 30 days.";
    by_week = "By week after that";
    week_from = "Week from";
    none_later = "None.";
    ending_in_30 = "Ending within 30 days, the soonest first";
    nothing_ends = "Nothing ends so soon.";
    by_end = "Domains by the end of their certificate";

    coloured_by = "Whose move it is where a renewal is late:";
    renewed_in_time = "Not late";

    // ---- Alerts ----
    alerts = "Alerts";
    alerts_lead = "What somebody should know of now. Each is told once and ends by itself.";
    of_the_platform = "Of the platform, by cause";
    of_names = "Of single names, the latest first";
    no_alert = "Nothing is wrong with the platform.";
    no_alert_of_names = "No certificate ends that should have been renewed.";
    what_is_wrong = "What is wrong";
    kind = "Kind";
    how_many = "How many";
    raised = "Since";
    life_left = "Life left";
    less_than(percent) = "less than {percent} %";
    it_ended = "ended";
    first_alerts() = "The latest ones; `nameplate alerts` has all.";

    // ---- Edges ----
    enrolled = "Enrolled";
    feed_stands_at = "The feed stands at";
    no_edge() = "No edge is enrolled. Make a join token with `nameplate token create --edge`.";
    edges_by_name = "Edges by name";
    edge = "Edge";
    heard_of = "Heard of";
    copy_numbers = "Copy (epoch / number)";
    behind = "Behind";
    not_counted = "not counted";
    first_edges(n) = "The first {n} by name; `nameplate edge list` has all.";
    up_to_date = "Up to date";
    catching_up = "Catching up";
    silent = "Silent";
    left_behind = "Left behind";
    drained = "Drained";
    one_change = "1 change";
    n_changes(n) = "{n} changes";
    other_epoch = "of another epoch";
    has_and_serves_not = "Certificates that an edge has and does not serve";
    none_unserved = "None: what was confirmed is served.";
    exceptions_by_edge = "Exceptions by edge";
    exceptions = "Exceptions";
    serial = "Serial";
    seen_instead = "Seen instead";
    when = "When";

    // ---- Tenants ----
    no_tenant() = "No tenant yet. Add one with `nameplate tenant add SLUG`.";
    tenants_by_age = "Tenants by age";
    tenants_caption = "Tenants, the oldest first";
    slug = "Slug";
    name = "Name";
    status = "Status";
    open_claims = "Open claims";
    ours_to_move = "Ours to move";
    theirs_to_move = "Theirs to move";
    added = "Added";
    tier = "Tier";
    placement = "Region / stamp / shard";
    version = "Version";
    where_its_claims_stand = "Where its claims stand";
    its_claims_by_state = "Claims by their state";
    in_the_way = "What stands in the way";
    its_domains = "Its domains";
    its_domains_caption = "Domains of this tenant, the oldest first";
}
