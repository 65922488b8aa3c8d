//! What befalls the world in a year: drawn before it begins, from the seed alone.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::names::Trouble;
use crate::env::manual::Hand;
use crate::model::moment::Moment;

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);
/// The percentage of names that meet something is of so much time.
const PER: Duration = Duration::from_secs(30 * 86_400);

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Act {
    /// A tenant signs a name up.
    SignUp,
    /// Something goes wrong with some name's zone, and is put right after this.
    Trouble(Trouble, Duration),
    /// A tenant removes a domain; its records stay, or go first.
    Remove { dangling: bool },
    /// A tenant leaves with all its names.
    Leave { dangling: bool },
    /// A stranger claims a name that somebody else is served by.
    StrangerClaimsLive,
    /// The owner of a name moves it to another tenant.
    Move,
    /// The CA answers nobody for so long.
    CaAway(Duration),
    /// An edge is behind for so long: silent, or stuck.
    EdgeLags(Duration),
    /// Whoever takes the webhooks is down for so long.
    ReceiverDown(Duration),
    /// A process dies at one of its next boundaries.
    Crash,
}

/// The kinds of acts, as a report counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the words say it")]
pub enum EventKind {
    SignUp,
    RecordGone,
    WayGone,
    BothGone,
    CaaHostile,
    AaaaElsewhere,
    DnssecBroken,
    ZoneSilent,
    Removed,
    RemovedDangling,
    TenantLeft,
    StrangerClaimed,
    Moved,
    CaAway,
    EdgeLagged,
    ReceiverDown,
    Crash,
}

impl Act {
    pub(super) fn kind(self) -> EventKind {
        match self {
            Act::SignUp => EventKind::SignUp,
            Act::Trouble(Trouble::RecordGone, _) => EventKind::RecordGone,
            Act::Trouble(Trouble::WayGone, _) => EventKind::WayGone,
            Act::Trouble(Trouble::BothGone, _) => EventKind::BothGone,
            Act::Trouble(Trouble::CaaHostile, _) => EventKind::CaaHostile,
            Act::Trouble(Trouble::AaaaElsewhere, _) => EventKind::AaaaElsewhere,
            Act::Trouble(Trouble::Bogus, _) => EventKind::DnssecBroken,
            Act::Trouble(Trouble::Silent, _) => EventKind::ZoneSilent,
            Act::Remove { dangling: false } => EventKind::Removed,
            Act::Remove { dangling: true } => EventKind::RemovedDangling,
            Act::Leave { .. } => EventKind::TenantLeft,
            Act::StrangerClaimsLive => EventKind::StrangerClaimed,
            Act::Move => EventKind::Moved,
            Act::CaAway(_) => EventKind::CaAway,
            Act::EdgeLags(_) => EventKind::EdgeLagged,
            Act::ReceiverDown(_) => EventKind::ReceiverDown,
            Act::Crash => EventKind::Crash,
        }
    }
}

/// How much of it there is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plot {
    pub(super) start: Moment,
    pub(super) lasts: Duration,
    pub(super) names: usize,
    pub(super) hostile_percent: u32,
}

/// Acts by their moment, in order.
pub(super) struct Script(BTreeMap<(Moment, usize), Act>);

impl Script {
    pub(super) fn draw(plot: Plot, hand: &Hand) -> Script {
        let mut script = Script(BTreeMap::new());
        let Plot { start, lasts, names, hostile_percent } = plot;
        let first = DAY.min(lasts / 20);
        // Names come evenly over a twelfth of the time, so that their certificates do not all end together.
        let sign_ups = lasts / 12;
        for n in 0..names {
            script.add(start + part(sign_ups, n, names), Act::SignUp);
        }
        if hostile_percent == 0 {
            return script;
        }
        let end = start + lasts;
        let quiet_from = start + sign_ups + first;
        let left = end.since(quiet_from);
        let share = left.as_secs_f64() / PER.as_secs_f64() * f64::from(hostile_percent) / 100.0;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a count")]
        let befallen = (names as f64 * share).round().max(1.0) as usize;
        for n in 0..befallen {
            let at = quiet_from + drawn(hand, left);
            let act = hostile(hand, n);
            script.add(at, act);
        }
        // What befalls everybody.
        script.every(hand, quiet_from, end, 30 * DAY, |hand| Act::CaAway(HOUR + drawn(hand, 7 * HOUR)));
        script.every(hand, quiet_from, end, 7 * DAY, |hand| Act::EdgeLags(Duration::from_secs(300) + drawn(hand, 6 * HOUR)));
        script.every(hand, quiet_from, end, 30 * DAY, |hand| Act::ReceiverDown(HOUR + drawn(hand, 7 * HOUR)));
        script.every(hand, start, end, DAY, |_| Act::Crash);
        script
    }

    fn add(&mut self, at: Moment, act: Act) {
        let n = self.0.len();
        self.0.insert((at, n), act);
    }

    fn every(&mut self, hand: &Hand, from: Moment, until: Moment, every: Duration, act: impl Fn(&Hand) -> Act) {
        let mut at = from + drawn(hand, every);
        while at < until {
            self.add(at, act(hand));
            at = at + every / 2 + drawn(hand, every);
        }
    }

    pub(super) fn next_at(&self) -> Option<Moment> {
        self.0.keys().next().map(|(at, _)| *at)
    }

    /// What is due.
    pub(super) fn pop(&mut self, now: Moment) -> Option<Act> {
        self.0.first_entry().filter(|entry| entry.key().0 <= now).map(|entry| entry.remove())
    }
}

/// A time below `most`.
pub(super) fn drawn(hand: &Hand, most: Duration) -> Duration {
    Duration::from_micros(hand.below(u64::try_from(most.as_micros()).unwrap_or(u64::MAX)))
}

fn part(of: Duration, n: usize, all: usize) -> Duration {
    of / u32::try_from(all.max(1)).unwrap_or(u32::MAX) * u32::try_from(n).unwrap_or(u32::MAX)
}

/// What befalls one name: each kind in its turn, so that a year has all of them.
fn hostile(hand: &Hand, n: usize) -> Act {
    let days = |from: u64, upto: u64| {
        DAY * u32::try_from(from).unwrap_or(1) + drawn(hand, DAY * u32::try_from(upto - from).unwrap_or(1))
    };
    match n % 13 {
        0 => Act::Trouble(Trouble::RecordGone, days(2, 20)),
        1 => Act::Trouble(Trouble::CaaHostile, days(2, 40)),
        2 => Act::Remove { dangling: true },
        3 => Act::Trouble(Trouble::Silent, days(1, 20)),
        4 => Act::Trouble(Trouble::WayGone, days(2, 30)),
        5 => Act::Move,
        6 => Act::Trouble(Trouble::AaaaElsewhere, days(2, 40)),
        7 => Act::Trouble(Trouble::Bogus, days(1, 20)),
        8 => Act::StrangerClaimsLive,
        9 => Act::Trouble(Trouble::BothGone, days(1, 12)),
        10 => Act::Remove { dangling: false },
        // Most of what is wrong with a zone is over within hours.
        11 => Act::Trouble(Trouble::RecordGone, HOUR + drawn(hand, 12 * HOUR)),
        _ => Act::Leave { dangling: hand.below(2) == 0 },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const START: Moment = Moment::from_secs(1_800_000_000);

    fn plot(names: usize, hostile_percent: u32) -> Plot {
        Plot { start: START, lasts: 365 * DAY, names, hostile_percent }
    }

    fn all(script: &mut Script) -> Vec<Act> {
        std::iter::from_fn(|| script.pop(Moment::NEVER)).collect()
    }

    #[test]
    fn a_year_of_a_thousand_names_has_every_kind_and_one_seed_draws_one_script() {
        let draw = |seed| all(&mut Script::draw(plot(1_000, 1), &Hand::new(START, seed)));
        let acts = draw(1);
        let kinds: BTreeSet<EventKind> = acts.iter().map(|act| act.kind()).collect();
        assert_eq!(kinds.len(), 17, "{kinds:?}");
        assert_eq!(acts.iter().filter(|act| act.kind() == EventKind::SignUp).count(), 1_000);
        assert_eq!(draw(1), acts);
        assert_ne!(draw(2), acts);
    }

    #[test]
    fn without_hostility_names_only_sign_up() {
        let acts = all(&mut Script::draw(plot(10, 0), &Hand::new(START, 1)));
        assert!(acts.len() == 10 && acts.iter().all(|act| *act == Act::SignUp), "{acts:?}");
    }

    #[test]
    fn an_act_is_given_out_when_it_is_due_and_not_before() {
        let mut script = Script::draw(plot(2, 0), &Hand::new(START, 1));
        assert_eq!((script.next_at(), script.pop(START - DAY)), (Some(START), None));
        assert_eq!(script.pop(START), Some(Act::SignUp));
        assert_eq!(script.pop(START), None);
    }
}
