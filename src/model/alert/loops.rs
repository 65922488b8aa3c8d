//! The loops of a control plane: what each is called, how often it goes round at least, and what is left undone while it does not.
//!
//! A loop that hangs, or fails every time, is seen by nobody who looks at domains alone: nothing is overdue while nothing is looked
//! for. So each says that it went round and did its work, in whichever process; how long ago that was is looked at.

use std::time::Duration;

/// So many rounds are missed before a loop counts as silent.
const MISSED: u32 = 10;

/// No loop counts as silent sooner: a round may have much to do, or servers that keep it waiting.
pub const LEAST: Duration = Duration::from_secs(600);

/// The pulse of the sweep, which is told of as the workers that stopped and is none of [`LOOPS`].
pub const SWEEP: &str = "sweep";

/// A loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loop {
    /// Its name, in the log, among pulses, and as the label of its metric.
    pub name: &'static str,
    /// The longest pause between two rounds.
    pub every: Duration,
    /// What is not done while it is silent.
    pub without: &'static str,
}

impl Loop {
    /// After which silence somebody should know.
    pub fn silence(&self) -> Duration {
        (self.every * MISSED).max(LEAST)
    }
}

macro_rules! loops {
    ($($(#[$doc:meta])* $const:ident = $name:literal every $millis:literal ms, without $without:literal;)*) => {
        $($(#[$doc])* pub const $const: Loop =
            Loop { name: $name, every: Duration::from_millis($millis), without: $without };)*
        /// All of them, by name.
        pub const LOOPS: &[Loop] = &[$($const),*];
    };
}

loops! {
    /// CA accounts that are missing.
    ACCOUNTS = "accounts" every 5_000 ms, without "accounts at certificate authorities are not looked after";
    /// Alerts: a threshold that is crossed is told within a minute.
    ALERTS = "alerts" every 20_000 ms, without "nothing is told of";
    /// Clocks are compared, and what one that ran ahead left behind is looked for.
    CLOCKS = "clocks" every 600_000 ms, without "what a wrong clock put off stays put off";
    /// Grants; looked for, too, as other processes queue orders.
    DISPATCHER = "dispatcher" every 10_000 ms, without "no order gets its turn: nothing is issued or renewed";
    /// Names whose DNS provider may set the records itself.
    DOMAIN_CONNECT = "domain_connect" every 5_000 ms, without "nobody is offered to have records set by the DNS provider";
    /// Imported names, looked at in laps.
    IMPORT_LAP = "import_lap" every 2_000 ms, without "imported names are not looked at";
    /// Rows of imports, whose files another process may have received.
    IMPORTS = "imports" every 3_000 ms, without "rows of imports are not judged";
    /// Addresses that something is to be written to.
    MAIL = "mail" every 1_000 ms, without "no mail is written";
    /// Names at rest that are to be looked at.
    NAMES_AT_REST = "names_at_rest" every 60_000 ms, without "names that were let go of are neither reminded of nor freed";
    /// Tenants that leave, whom another process may have let go.
    OFF_BOARDING = "off_boarding" every 5_000 ms, without "names of tenants that leave are not let go of";
    /// What is older than is kept.
    OLD_DELIVERIES = "old_deliveries" every 3_600_000 ms, without "what is over is not removed";
    /// Changes and events that wait for their numbers.
    RELAY = "relay" every 500 ms, without "edges learn of nothing, and events have no place in the stream";
    /// What edges remember of a restored database.
    REMEMBERED = "remembered" every 60_000 ms, without "what edges remember is not settled";
    /// Certificates about which a CA is to be asked.
    RENEWAL_WINDOWS = "renewal_windows" every 60_000 ms, without "certificate authorities are not asked when to renew";
    /// Replacements that were begun, elsewhere perhaps.
    REPLACEMENTS = "replacements" every 15_000 ms, without "replacements of certificates do not go on";
    /// Certificates that are to be revoked.
    REVOCATIONS = "revocations" every 60_000 ms, without "certificates are not revoked";
    /// Live names, whose batches follow the day this closely.
    ROUTINE_LOOKS = "routine_looks" every 60_000 ms, without "live names are not looked at: a tie that is lost goes unnoticed";
    /// What is to be sent to webhooks.
    WEBHOOKS = "webhooks" every 1_000 ms, without "nothing is sent to webhooks";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_is_silent_after_ten_rounds_and_no_sooner_than_after_ten_minutes() {
        assert_eq!(RELAY.silence(), LEAST);
        assert_eq!(ROUTINE_LOOKS.silence(), LEAST);
        assert_eq!(CLOCKS.silence(), Duration::from_secs(6_000));
    }

    #[test]
    fn names_are_unique_and_fit_a_label() {
        let mut names: Vec<_> = LOOPS.iter().map(|l| l.name).collect();
        assert!(names.iter().all(|name| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')), "{names:?}");
        names.dedup();
        assert_eq!(names.len(), LOOPS.len());
        assert!(names.is_sorted(), "{names:?}");
    }
}
