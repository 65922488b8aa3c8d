//! Imports.

use super::Said;

texts! {
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
    one_row_arrived = "1 row has arrived so far. Nothing counts until the file is whole.";
    rows_arrived(n) = "{n} rows have arrived so far. Nothing counts until the file is whole.";
    one_row_judged = "The row has its verdict.";
    one_row_not_judged = "The row has no verdict yet.";
    one_of_rows_judged(all) = "1 of {all} rows has its verdict.";
    of_rows_judged(n, all) = "{n} of {all} rows have their verdict.";
    held_at(n, all) = "Held at row {n} of {all}.";
    given_up_at(n, all) = "Given up at row {n} of {all}.";
    paused_by_tenant(ago, full) = "Paused by the tenant {ago}, at {full}.";
    paused_by_operator(ago, full) = "Paused by the operator {ago}, at {full}.";
    cancelled_by_tenant(ago, full) = "Cancelled by the tenant {ago}, at {full}.";
    cancelled_by_operator(ago, full) = "Cancelled by the operator {ago}, at {full}.";
    one_claim_held = "Nothing is ordered for its claim that waits before you let it go on; it can be claimed by itself.";
    claims_held(n) = "Nothing is ordered for its {n} claims that wait before you let it go on; each can be claimed by itself.";
    one_claim_given_up = "Nothing is ordered any more for its claim that waits; it can be claimed by itself, or removed.";
    claims_given_up(n) = "Nothing is ordered any more for its {n} claims that wait; each can be claimed by itself, or removed.";
    was_a_check = "Nothing was claimed: this was a check.";
    one_would_be_claimed = "1 name would be claimed.";
    n_would_be_claimed(n) = "{n} names would be claimed.";
    one_claimed_one_yours(claimed, yours) = "{claimed} name is claimed, {yours} was yours already.";
    one_claimed_n_yours(claimed, yours) = "{claimed} name is claimed, {yours} were yours already.";
    n_claimed_one_yours(claimed, yours) = "{claimed} names are claimed, {yours} was yours already.";
    n_claimed_n_yours(claimed, yours) = "{claimed} names are claimed, {yours} were yours already.";
    every_row_taken = "Every row was taken.";
    one_row_not_taken = "1 row was not taken; below is why.";
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
    check_import = "Check these names now";
    import_is_checked = "Each name that waits for its records is looked at now, one after the other.";
    next_import_look(ago, full) = "The next of them is looked at {ago}, at {full}. Until something changes, each is looked at about once an hour, in a large import less often.";
    no_claims_here = "No name of this import stands here now.";
    import_claims_caption(state) = "Names of this import: {state}";
    back_to_import = "Back to the import";
    publish_these = "Publish these records; whoever owns the DNS can take them as one file:";
    records_zone_file = "Records as a zone file";
    records_csv = "Records as CSV";
    limits_plan = "What the limits make of it";
    limits_plan_was = "What the limits made of it";
    plan_was(orders, made) = "By the plan of {made}, certificates to order: {orders}.";
    last_order_was(full) = "The last was to be ordered at {full}, with every name set up right.";
    live_by_now(n) = "Live now: {n}.";
    slow_domains_were = "These had more names than that:";
    one_to_order = "1 certificate to order.";
    to_order_in_one(orders) = "{orders} certificates to order for names under 1 registered domain.";
    to_order(orders, domains) = "{orders} certificates to order for names under {domains} registered domains.";
    one_ahead = "1 that waits already comes before.";
    n_ahead(ahead) = "{ahead} that wait already come before.";
    last_order(ago, full) = "If every name is set up right and nothing else comes between, the last is ordered {ago}, at {full}.";
    orders_picture = "Orders over time as planned; the table below says the same";
    one_order_span(starts, ends) = "From {starts} to {ends}: 1 order.";
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
}
