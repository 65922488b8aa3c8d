//! Workers: what each has in hand, how far it comes, and what is left when one dies.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::engine::{Blade, Gate, Ran, Task, run};
use crate::app::advance::{Advanced, Grip};
use crate::app::{App, AppError};
use crate::model::id::DomainId;
use crate::model::moment::Moment;

/// A worker keeps a domain whose next step is due within this, as the workers of a process do.
const IN_HAND: Duration = Duration::from_secs(2);
/// Domains that one worker moves at the same time.
const EACH: usize = 16;

type Step = Task<(Result<Advanced, AppError>, Grip)>;

enum Held {
    /// A step that stands at the gate.
    Stands(Step),
    /// A domain whose next step is due in a moment.
    Again(Grip),
}

/// A domain in a worker's hand.
pub(super) struct InHand {
    worker: usize,
    id: DomainId,
    held: Held,
}

/// What came of going on with one.
pub(super) enum Came {
    /// A step was recorded, or found nothing to do.
    Stepped(DomainId),
    /// It stands, and nothing is recorded yet.
    Stands,
    /// Its worker died.
    Died,
}

/// All workers.
pub(super) struct Crew {
    apps: Vec<App>,
    busy: Vec<usize>,
    in_hand: BTreeMap<(Moment, u64), InHand>,
    arrivals: u64,
    /// Steps that were taken to their end.
    pub(super) steps: u64,
}

impl Crew {
    pub(super) fn new(apps: Vec<App>) -> Self {
        Crew { busy: vec![0; apps.len()], apps, in_hand: BTreeMap::new(), arrivals: 0, steps: 0 }
    }

    /// Who has a hand free.
    pub(super) fn free(&self) -> Option<usize> {
        let least = (0..self.busy.len()).min_by_key(|worker| self.busy[*worker])?;
        (self.busy[least] < EACH).then_some(least)
    }

    /// When the next one in hand can go on.
    pub(super) fn next_at(&self) -> Option<Moment> {
        self.in_hand.first_key_value().map(|((at, _), _)| *at)
    }

    /// The next one that can go on by now.
    pub(super) fn pop(&mut self, now: Moment) -> Option<InHand> {
        self.in_hand.first_entry().filter(|one| one.key().0 <= now).map(|one| one.remove())
    }

    /// A worker takes a domain up.
    pub(super) fn take(&mut self, worker: usize, id: DomainId) -> InHand {
        self.busy[worker] += 1;
        InHand { worker, id, held: Held::Again(Grip::default()) }
    }

    /// Goes on with a domain as far as it comes.
    pub(super) async fn go_on(&mut self, one: InHand, gate: &Gate, blade: &Blade) -> Result<Came, AppError> {
        let InHand { worker, id, held } = one;
        let app = &self.apps[worker];
        let task = match held {
            Held::Stands(task) => task,
            Held::Again(mut grip) => {
                let (app, id) = (app.clone(), id.clone());
                Task::new(async move { (grip.step(&app, &id, true).await, grip) })
            }
        };
        match run(task, gate, blade).await {
            Ran::Stands(until, task) => {
                self.hold(until, InHand { worker, id, held: Held::Stands(task) });
                Ok(Came::Stands)
            }
            Ran::Cut => {
                self.die(worker);
                Ok(Came::Died)
            }
            Ran::Ended((done, grip)) => {
                self.steps += 1;
                let now = app.env.now();
                let again = match done? {
                    Advanced::NotDue => None,
                    Advanced::Superseded => Some(now),
                    Advanced::Done(due) => (due.since(now) <= IN_HAND).then_some(due.max(now)),
                };
                match again {
                    Some(at) => self.hold(at, InHand { worker, id: id.clone(), held: Held::Again(grip) }),
                    None => self.busy[worker] -= 1,
                }
                Ok(Came::Stepped(id))
            }
        }
    }

    fn hold(&mut self, until: Moment, one: InHand) {
        self.arrivals += 1;
        self.in_hand.insert((until, self.arrivals), one);
    }

    /// A process ends: nothing of what it had in hand goes on. Another takes its place.
    fn die(&mut self, worker: usize) {
        self.in_hand.retain(|_, one| one.worker != worker);
        self.busy[worker] = 0;
    }
}
