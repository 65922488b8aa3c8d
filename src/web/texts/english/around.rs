//! What stands around every page, and what several say: times, and where a claim stands.

use super::Said;

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
    in_a_moment = "now";
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
}
