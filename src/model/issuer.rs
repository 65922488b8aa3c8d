//! Issuers: whether one can be used now, and which of several a name goes to.

use std::time::Duration;

use super::evidence::Verdict;
use super::moment::Moment;
use super::vocabulary::vocabulary;

/// So many failures in a row open the circuit.
pub const THRESHOLD: i64 = 5;
/// How long it stays open: after the fifth failure in a row, and after each probe that failed.
pub const OPEN_FOR: [Duration; 6] = [
    Duration::from_secs(60),
    Duration::from_secs(120),
    Duration::from_secs(240),
    Duration::from_secs(480),
    Duration::from_secs(960),
    Duration::from_secs(1_800),
];
/// When the CA is asked again how our account stands: the wait after it could not be used for the n-th time in a row.
pub const ASK_AGAIN: [Duration; 4] =
    [Duration::from_secs(60), Duration::from_secs(600), Duration::from_secs(6_000), Duration::from_secs(86_400)];
/// A CA that asks for more than a day is asked again after a day, but where it says that a limit is used up.
pub const LONGEST_TOLD: Duration = Duration::from_secs(24 * 3600);
/// Something odd about an issuer that was not seen again for this long is over: who met it may be gone.
pub const ODD_FOR: Duration = Duration::from_secs(48 * 3600);
/// A name waits this long for room at an issuer that is preferred before it goes to the next.
pub const PATIENCE: Duration = Duration::from_secs(3_600);

/// What is remembered of a CA's answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Failures in a row that were the CA's own: no connection, no answer, a fault.
    pub failures: i64,
    /// Nothing is asked before.
    pub open_until: Moment,
    /// The last failure, in words.
    pub said: Option<String>,
    /// When that was.
    pub at: Option<Moment>,
    /// Why the account cannot be used.
    pub halted: Option<String>,
    /// How often in a row that was found.
    pub halts: i64,
    /// When the CA is asked about the account again.
    pub check_at: Option<Moment>,
}

/// Whether an issuer may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Circuit {
    /// As much as its limits allow.
    Closed,
    /// One order at a time, to find out.
    Probing,
    /// Not before then.
    Open(Moment),
    /// Not before our account there can be used.
    Halted,
}

impl Circuit {
    /// As people read it.
    pub const fn word(self) -> &'static str {
        match self {
            Circuit::Closed => "ok",
            Circuit::Probing => "probing",
            Circuit::Open(_) => "open",
            Circuit::Halted => "halted",
        }
    }
}

impl Health {
    /// The circuit as it is now.
    pub fn circuit(&self, now: Moment) -> Circuit {
        if self.halted.is_some() {
            Circuit::Halted
        } else if self.open_until > now {
            Circuit::Open(self.open_until)
        } else if self.failures >= THRESHOLD {
            Circuit::Probing
        } else {
            Circuit::Closed
        }
    }

    /// Whether a success would be news.
    pub fn is_clouded(&self) -> bool {
        self.failures > 0 || self.halts > 0
    }
}

/// What a call told of the CA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IssuerNews {
    /// It answers again.
    Answers,
    /// It failed, in these words.
    Failed {
        /// The words.
        said: String,
        /// How long it asked everybody to stay away.
        told: Option<Duration>,
    },
    /// Our account cannot be used, in the CA's words.
    Halted(String),
    /// The same, said of an order that is on its way already, which may be asked for again and again. It is found out once:
    /// where the CA says that the account is well after all, it is not believed a second time until something has worked.
    InDoubt(String),
    /// Something is odd about it, in these words.
    Odd(Oddity, String),
    /// That is not so, or not any more.
    Usual(Oddity),
}

vocabulary! {
    /// What may be odd about an issuer that answers well: operators are told of it once, however many names meet it.
    Oddity {
        /// It offers no challenge of the one type that is answered here.
        ChallengeTypeMissing = "challenge_type_missing",
        /// Its certificates are not valid yet, or not any more, by our clock.
        ClockDiffers = "clock_differs",
    }
}

/// An issuer that a name could go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// What the name's CAA records say of it.
    pub caa: Verdict,
    /// When it can be asked and has room for the name.
    pub ready_at: Moment,
}

/// The issuer that a name goes to, of candidates in order of preference: the first that CAA allows and that has room soon;
/// where none has soon, the one that has first. Nothing where CAA allows none.
pub fn choose(candidates: &[Candidate], now: Moment) -> Option<usize> {
    let allowed = || candidates.iter().enumerate().filter(|(_, c)| c.caa == Verdict::Pass);
    let soon = allowed().find(|(_, c)| c.ready_at <= now + PATIENCE);
    soon.or_else(|| allowed().min_by_key(|(_, c)| c.ready_at)).map(|(n, _)| n)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Moment = Moment::from_secs(1_000_000);

    fn candidate(caa: Verdict, wait: u64) -> Candidate {
        Candidate { caa, ready_at: NOW + Duration::from_secs(wait) }
    }

    #[test]
    fn the_first_that_may_and_can_is_chosen() {
        use Verdict::{Fail, Pass, Unknown};
        let long = PATIENCE.as_secs() + 1;
        for (candidates, chosen) in [
            (vec![candidate(Pass, 0), candidate(Pass, 0)], Some(0)),
            (vec![candidate(Fail, 0), candidate(Pass, 0)], Some(1)),
            (vec![candidate(Pass, PATIENCE.as_secs()), candidate(Pass, 0)], Some(0)),
            (vec![candidate(Pass, long), candidate(Pass, 0)], Some(1)),
            (vec![candidate(Pass, long), candidate(Fail, 0)], Some(0)),
            (vec![candidate(Pass, 3 * long), candidate(Pass, 2 * long)], Some(1)),
            (vec![candidate(Fail, 0), candidate(Unknown, 0)], None),
            (vec![], None),
        ] {
            assert_eq!(choose(&candidates, NOW), chosen, "{candidates:?}");
        }
    }

    #[test]
    fn the_circuit_opens_probes_and_halts() {
        let mut health = Health { failures: THRESHOLD - 1, ..Health::default() };
        assert_eq!(health.circuit(NOW), Circuit::Closed);
        health.failures = THRESHOLD;
        health.open_until = NOW + OPEN_FOR[0];
        assert_eq!(health.circuit(NOW), Circuit::Open(NOW + OPEN_FOR[0]));
        assert_eq!(health.circuit(NOW + OPEN_FOR[0]), Circuit::Probing);
        health.halted = Some("gone".to_owned());
        assert_eq!(health.circuit(NOW + OPEN_FOR[0]), Circuit::Halted);
    }
}
