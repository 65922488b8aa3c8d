//! The `Retry-After` header (RFC 9110 §10.2.3): seconds or a date. Junk, the past and zero mean that nothing was said.

use std::time::{Duration, SystemTime};

use crate::model::moment::Moment;

/// How long the header's values ask to wait from `now`. Of several, the longest: waiting longer is never punished.
pub fn parse<'a>(values: impl IntoIterator<Item = &'a [u8]>, now: Moment) -> Option<Duration> {
    values.into_iter().filter_map(|v| one(std::str::from_utf8(v).ok()?.trim(), now)).max()
}

fn one(text: &str, now: Moment) -> Option<Duration> {
    let wait = if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        Duration::from_secs(text.parse().ok()?)
    } else {
        let at = httpdate::parse_http_date(text).ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        (Moment::default() + at).since(now)
    };
    (!wait.is_zero()).then_some(wait)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Moment = Moment::from_secs(1_790_000_000);

    fn read(values: &[&str]) -> Option<u64> {
        parse(values.iter().map(|v| v.as_bytes()), NOW).map(|d| d.as_secs())
    }

    #[test]
    fn both_forms_are_read_and_everything_else_says_nothing() {
        assert_eq!(read(&["3"]), Some(3));
        assert_eq!(read(&["604800"]), Some(604_800));
        assert_eq!(read(&["Thu, 01 Jan 2032 00:00:00 GMT"]), Some(1_956_528_000 - 1_790_000_000));
        assert_eq!(read(&["Thursday, 01-Jan-32 00:00:00 GMT"]), Some(1_956_528_000 - 1_790_000_000));
        for nothing in
            ["Fri, 31 Dec 1999 23:59:59 GMT", "-5", "soon", "", "0", "1.5", "+3", "99999999999999999999999", "3 s"]
        {
            assert_eq!(read(&[nothing]), None, "{nothing:?}");
        }
        assert_eq!(read(&["3", "soon", "30"]), Some(30));
        assert_eq!(read(&[]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(junk in prop::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_ne!(parse([junk.as_slice()], NOW), Some(Duration::ZERO));
        }

        #[test]
        fn any_number_of_seconds_reads_back(secs in 1u64..) {
            prop_assert_eq!(read(&[&secs.to_string()]), Some(secs));
        }

        #[test]
        fn any_later_date_reads_back(ahead in 1u64..200_000_000_000) {
            let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000 + ahead);
            if 1_790_000_000 + ahead < 253_402_300_800 {
                prop_assert_eq!(read(&[&httpdate::fmt_http_date(at)]), Some(ahead));
            }
        }
    }
}
