//! Letting go of a name: what the operator decided, and what the looks at a name at rest come to.
//!
//! A name that was let go rests until three looks over a day saw it lead elsewhere; then it is free. While it still leads here its
//! former tenant is reminded once a week of the record to delete. Silence neither counts nor resets: a zone that does not answer
//! frees no name and reminds nobody. How to get it wrong: free a name on one look, or on looks that all fell into one outage of a
//! resolver.

pub mod records;

use std::time::Duration;

use super::evidence::Tie;
use super::moment::Moment;
use super::reason::Reason;
use super::tie;
use super::vocabulary::vocabulary;

vocabulary! {
    /// When certificates of names that were let go of are revoked at their CA.
    Revoke {
        /// Never: the keys are destroyed, and the certificates end by themselves.
        Never = "never",
        /// When the name has another holder.
        OnHandover = "on_handover",
        /// When the claim is over, too.
        Always = "always",
    }
}

/// What the operator decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LettingGo {
    /// A tie that was seen to be lost for so long lets the name go.
    pub tie_grace: Duration,
    /// Which certificates are revoked.
    pub revoke: Revoke,
}

impl Default for LettingGo {
    fn default() -> Self {
        LettingGo { tie_grace: tie::GRACE, revoke: Revoke::OnHandover }
    }
}

/// So many looks in a row must see a name lead elsewhere...
pub const LOOKS_OFF: i64 = 3;
/// ...over at least this long, before it is free.
pub const OFF_FOR: Duration = Duration::from_secs(24 * 3600);
/// Between two reminders of one name.
pub const REMIND_EVERY: Duration = Duration::from_secs(7 * 24 * 3600);
/// The first reminder comes after this: whoever removes a domain is deleting its records just now.
pub const FIRST_REMINDER: Duration = Duration::from_secs(24 * 3600);
/// The first look at a name that came to rest.
pub const FIRST_LOOK: Duration = Duration::from_secs(3600);
/// A name that leads elsewhere is looked at so often until it is free.
const AGAIN_OFF: Duration = Duration::from_secs(12 * 3600);
/// One that still leads here.
const AGAIN_HERE: Duration = Duration::from_secs(24 * 3600);
/// One that could not be looked at.
const AGAIN_UNKNOWN: Duration = Duration::from_secs(6 * 3600);

/// What one look saw of a name at rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leads {
    /// To us, or partly so.
    Here,
    /// Elsewhere, or nowhere.
    Elsewhere,
    /// Could not be learnt.
    Unknown,
}

impl Leads {
    /// From what a look found of its way, as of the tenant that let it go.
    pub fn of(way: Reason) -> Leads {
        match way {
            // To us, and not to whoever let it go: nothing for them to delete, and not off us either.
            Reason::CnameWrongTenantTarget => Leads::Unknown,
            Reason::CnamePropagating
            | Reason::ProxiedReachable
            | Reason::AddressMixed
            | Reason::AaaaPointsElsewhere
            | Reason::APointsElsewhere
            | Reason::AddressRetired
            | Reason::HttpsRrPointsElsewhere => Leads::Here,
            _ => match way.tie() {
                Tie::Present => Leads::Here,
                Tie::Gone => Leads::Elsewhere,
                Tie::Silent => Leads::Unknown,
            },
        }
    }
}

/// What is remembered of a name at rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resting {
    /// Since when it rests.
    pub since: Moment,
    /// Looks in a row that saw it lead elsewhere.
    pub looks_off: i64,
    /// The first of them.
    pub first_off_at: Option<Moment>,
    /// Since when it is seen to lead here.
    pub dangles_since: Option<Moment>,
    /// The last reminder.
    pub reminded_at: Option<Moment>,
}

/// What a look at a name at rest comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Look again.
    Rest,
    /// Remind, and look again.
    Remind,
    /// It dangles no longer; of one that somebody was reminded of, that is told.
    LetUsGo {
        /// Whether somebody was.
        told: bool,
    },
    /// It is free.
    Free,
}

impl Resting {
    /// A name that comes to rest now.
    pub fn begin(now: Moment) -> Resting {
        Resting { since: now, looks_off: 0, first_off_at: None, dangles_since: None, reminded_at: None }
    }

    /// After a look: what is remembered now, what is done, and when it is looked at next.
    #[must_use]
    pub fn seen(self, leads: Leads, now: Moment) -> (Resting, Step, Moment) {
        match leads {
            Leads::Unknown => (self, Step::Rest, now + AGAIN_UNKNOWN),
            Leads::Here => self.here(now),
            Leads::Elsewhere => self.elsewhere(now),
        }
    }

    fn here(self, now: Moment) -> (Resting, Step, Moment) {
        let since = self.dangles_since.unwrap_or(now);
        let due = self.reminded_at.map_or(self.since + FIRST_REMINDER, |at| at + REMIND_EVERY);
        let mut after = Resting { looks_off: 0, first_off_at: None, dangles_since: Some(since), ..self };
        if now < due {
            return (after, Step::Rest, (now + AGAIN_HERE).min(due));
        }
        after.reminded_at = Some(now);
        (after, Step::Remind, now + AGAIN_HERE)
    }

    fn elsewhere(self, now: Moment) -> (Resting, Step, Moment) {
        let first = self.first_off_at.unwrap_or(now);
        let after = Resting { looks_off: self.looks_off + 1, first_off_at: Some(first), dangles_since: None, ..self };
        if after.looks_off >= LOOKS_OFF && now.since(first) >= OFF_FOR {
            return (after, Step::Free, Moment::NEVER);
        }
        let step = match self.dangles_since {
            Some(_) => Step::LetUsGo { told: self.reminded_at.is_some() },
            None => Step::Rest,
        };
        (after, step, now + AGAIN_OFF)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::evidence::Verdict;

    const START: Moment = Moment::from_secs(1_800_000_000);

    #[test]
    fn three_looks_over_a_day_free_a_name() {
        let (mut rests, mut now, mut looks) = (Resting::begin(START), START + FIRST_LOOK, 0);
        loop {
            let (after, step, next) = rests.seen(Leads::Elsewhere, now);
            (rests, looks) = (after, looks + 1);
            if step == Step::Free {
                break;
            }
            now = next;
        }
        assert_eq!((looks, now), (3, START + FIRST_LOOK + OFF_FOR));
    }

    #[test]
    fn a_name_that_dangles_for_a_month_is_told_of_five_times_and_its_end_once() {
        let (mut rests, mut now, mut told) = (Resting::begin(START), START + FIRST_LOOK, Vec::new());
        while now.since(START) < Duration::from_secs(30 * 24 * 3600) {
            let (after, step, next) = rests.seen(Leads::Here, now);
            if step == Step::Remind {
                told.push(now.since(START).as_secs() / 86_400);
            }
            (rests, now) = (after, next);
        }
        assert_eq!(told, [1, 8, 15, 22, 29]);
        let (rests, step, now) = rests.seen(Leads::Elsewhere, now);
        assert_eq!(step, Step::LetUsGo { told: true });
        assert_eq!(rests.seen(Leads::Elsewhere, now).1, Step::Rest, "its end is told once");
    }

    #[test]
    fn no_broken_zone_leads_elsewhere() {
        for reason in Reason::ALL {
            let leads = Leads::of(*reason);
            assert!(leads != Leads::Elsewhere || reason.tie() == Tie::Gone, "{reason:?}");
            assert!(reason.verdict() != Verdict::Unknown || leads == Leads::Unknown, "{reason:?}");
        }
        let leads = [Reason::CnameOk, Reason::CnameMissing, Reason::ZoneLame, Reason::DnsLookupFailed].map(Leads::of);
        assert_eq!(leads, [Leads::Here, Leads::Elsewhere, Leads::Unknown, Leads::Unknown]);
    }

    proptest! {
        /// Silence frees nothing and reminds nobody, whatever else is seen: the steps are those of the looks that saw something.
        #[test]
        fn silence_neither_counts_nor_resets(looks in prop::collection::vec((0..3_u8, 1..100_000_u64), 1..60)) {
            let (mut with, mut without, mut now) = (Resting::begin(START), Resting::begin(START), START);
            for (what, wait) in looks {
                now = now + Duration::from_secs(wait);
                let leads = [Leads::Here, Leads::Elsewhere, Leads::Unknown][usize::from(what)];
                let (after, step, next) = with.seen(leads, now);
                prop_assert!(next > now);
                if leads == Leads::Unknown {
                    prop_assert_eq!((after, step), (with, Step::Rest));
                } else {
                    let (other, other_step, _) = without.seen(leads, now);
                    prop_assert_eq!((other, other_step), (after, step));
                    without = other;
                }
                with = after;
                if step == Step::Free {
                    prop_assert!(with.looks_off >= LOOKS_OFF && now.since(with.first_off_at.unwrap_or(now)) >= OFF_FOR);
                    break;
                }
            }
        }
    }
}
