//! Times in words.

use crate::model::moment::Moment;
use crate::web::texts as t;

/// `in 15 seconds`, `3 minutes ago`, `just now`. What lies a moment ahead may be over by the clock of another machine: it is `now`.
pub(super) fn relative(at: Moment, now: Moment) -> String {
    let (ahead, span) = if at > now { (true, at.since(now)) } else { (false, now.since(at)) };
    let seconds = span.as_secs();
    // What is still to come is told to the nearest: seven days less a second are seven days.
    let whole = |unit: u64| if ahead { (seconds + unit / 2) / unit } else { seconds / unit };
    let said = match (seconds, ahead) {
        (0..=1, true) => return t::in_a_moment().to_owned(),
        (0..=1, false) => return t::just_now().to_owned(),
        (2..=119, true) => t::in_seconds(seconds),
        (2..=119, false) => t::seconds_ago(seconds),
        (120..=7_199, true) => t::in_minutes(whole(60)),
        (120..=7_199, false) => t::minutes_ago(whole(60)),
        (7_200..=172_799, true) => t::in_hours(whole(3_600)),
        (7_200..=172_799, false) => t::hours_ago(whole(3_600)),
        (_, true) => t::in_days(whole(86_400)),
        (_, false) => t::days_ago(whole(86_400)),
    };
    said.plain()
}

/// `29 Nov 2026, 23:05:10 UTC`, without the date's zero or the T and Z of machines.
pub(super) fn absolute(at: Moment) -> String {
    let format =
        time::macros::format_description!("[day padding:none] [month repr:short] [year], [hour]:[minute]:[second] UTC");
    time::OffsetDateTime::from_unix_timestamp(at.secs())
        .ok()
        .and_then(|t| t.format(format).ok())
        .unwrap_or_else(|| at.rfc3339())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_as_people_say_them() {
        let now = Moment::from_secs(1_000_000);
        let said = |secs| relative(Moment::from_secs(secs), now);
        assert_eq!(
            [said(1_000_015), said(999_999), said(999_800), said(990_000), said(1_000_000 + 30 * 86_400)],
            ["in 15 seconds", "just now", "3 minutes ago", "2 hours ago", "in 30 days"]
        );
        let week = 7 * 86_400;
        assert_eq!(
            [said(1_000_000 + week - 1), said(1_000_000 + week - 50_000), said(1_000_000 - week + 1), said(1_000_001)],
            ["in 7 days", "in 6 days", "6 days ago", "now"]
        );
        assert_eq!(absolute(Moment::from_secs(0)), "1 Jan 1970, 00:00:00 UTC");
    }
}
