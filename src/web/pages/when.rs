//! Times in words.

use crate::model::moment::Moment;

/// `in 15 seconds`, `3 minutes ago`, `just now`.
pub(super) fn relative(at: Moment, now: Moment) -> String {
    let (ahead, span) = if at > now { (true, at.since(now)) } else { (false, now.since(at)) };
    let seconds = span.as_secs();
    let (n, unit) = match seconds {
        0..=1 => return if ahead { "in a moment".into() } else { "just now".into() },
        2..=119 => (seconds, "second"),
        120..=7_199 => (seconds / 60, "minute"),
        7_200..=172_799 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    let plural = if n == 1 { "" } else { "s" };
    if ahead { format!("in {n} {unit}{plural}") } else { format!("{n} {unit}{plural} ago") }
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
        assert_eq!(absolute(Moment::from_secs(0)), "1 Jan 1970, 00:00:00 UTC");
    }
}
