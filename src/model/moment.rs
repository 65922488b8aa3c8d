//! Points in time as whole microseconds since 1970-01-01 UTC: what both databases store and all decisions compare.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A point in time, in whole microseconds, UTC. Arithmetic saturates: a date far away is far away, never a wrap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Moment(i64);

impl Moment {
    /// The latest representable moment: "never", for values that only compare.
    pub const NEVER: Moment = Moment(i64::MAX);

    /// From microseconds since the epoch.
    pub const fn from_micros(micros: i64) -> Self {
        Moment(micros)
    }

    /// From whole seconds since the epoch.
    pub const fn from_secs(secs: i64) -> Self {
        Moment(secs.saturating_mul(1_000_000))
    }

    /// Microseconds since the epoch.
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Whole seconds since the epoch, rounded down.
    pub const fn secs(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// Time from `earlier` to `self`; zero when `earlier` is in fact later.
    pub fn since(self, earlier: Moment) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// As people read it inside a sentence: `30 Dec 2026, 03:11 UTC`.
    pub fn in_words(self) -> String {
        let format = time::macros::format_description!("[day padding:none] [month repr:short] [year], [hour]:[minute] UTC");
        time::OffsetDateTime::from_unix_timestamp(self.secs())
            .ok()
            .and_then(|t| t.format(format).ok())
            .unwrap_or_else(|| self.rfc3339())
    }

    /// Reads RFC 3339, in any offset.
    pub fn from_rfc3339(text: &str) -> Option<Self> {
        let read = time::OffsetDateTime::parse(text, &time::format_description::well_known::Rfc3339).ok()?;
        i64::try_from(read.unix_timestamp_nanos() / 1_000).ok().map(Moment)
    }

    /// RFC 3339 in UTC, to the second, as pages and the API show it.
    pub fn rfc3339(self) -> String {
        time::OffsetDateTime::from_unix_timestamp(self.secs())
            .ok()
            .and_then(|t| t.format(&time::format_description::well_known::Rfc3339).ok())
            .unwrap_or_else(|| format!("{} s after 1970", self.secs()))
    }
}

fn micros(d: Duration) -> i64 {
    i64::try_from(d.as_micros()).unwrap_or(i64::MAX)
}

impl Add<Duration> for Moment {
    type Output = Moment;
    fn add(self, d: Duration) -> Moment {
        Moment(self.0.saturating_add(micros(d)))
    }
}

impl Sub<Duration> for Moment {
    type Output = Moment;
    fn sub(self, d: Duration) -> Moment {
        Moment(self.0.saturating_sub(micros(d)))
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.rfc3339())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_and_reads_as_rfc3339() {
        assert_eq!((Moment::NEVER + Duration::from_secs(1)), Moment::NEVER);
        assert_eq!(Moment::from_secs(5).since(Moment::from_secs(9)), Duration::ZERO);
        assert_eq!(Moment::from_secs(0).rfc3339(), "1970-01-01T00:00:00Z");
        assert_eq!(Moment::from_rfc3339("1970-01-01T01:00:02+01:00"), Some(Moment::from_secs(2)));
        assert_eq!(Moment::from_rfc3339("tomorrow"), None);
        assert_eq!(Moment::from_secs(0).in_words(), "1 Jan 1970, 00:00 UTC");
    }
}
