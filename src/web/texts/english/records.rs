//! The records to publish, as panels want them.

use super::Said;

texts! {
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
}
