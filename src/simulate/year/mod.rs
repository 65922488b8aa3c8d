//! A year in the life of names that are served, in a world that is not kind.
//!
//! **Owns** the script of what befalls the names ([`script`]) and who makes it happen (`acts`), the truth about each of them
//! ([`names`]), edges that lag ([`edges`]), a CA with moods ([`super::ca`]), a receiver of webhooks ([`receiver`]), and two judges:
//! [`oracle`] holds the invariants against what the store and the edges have, [`expected`] what should have been told against
//! what was, with [`risks`] for renewals and [`left`] for names left behind. One loop (`run`) lets workers, dispatcher, sweep,
//! routine looks, ARI polls, alerts and deliveries have their turns as the loops of a process do, and moves the clock from one
//! due moment to the next.
//! **Always holds:** the judges share no code with what they judge, and know nothing but rows, the edges' books and the truth.
//! **To get it wrong:** let a judge read what the application believes, or let the script look at how the application took it.

mod acts;
mod chart;
mod crew;
mod edges;
mod expected;
mod left;
mod names;
mod oracle;
mod receiver;
mod report;
mod risks;
mod rounds;
mod run;
mod sabotage;
mod script;
mod setup;

use std::time::Duration;

pub use chart::year_terminal;
pub use report::{DayPoint, YearReport};
pub use run::simulate_year;
pub use script::EventKind;

use super::ca::CaLimits;
use crate::model::ledger::Limit;
use crate::model::moment::Moment;

/// What is simulated.
#[derive(Clone, Debug)]
pub struct YearOptions {
    /// Names that are served.
    pub domains: usize,
    /// How long it lasts.
    pub days: u32,
    /// How long a certificate is good.
    pub certificate_days: u32,
    /// So many of a hundred names meet something hostile in each month.
    pub hostile_percent: u32,
    /// Workers.
    pub workers: usize,
    /// What the CA allows, and the product is told.
    pub limits: CaLimits,
    /// An answer of the CA takes up to so long.
    pub latest: Duration,
    /// When it begins.
    pub start: Moment,
    /// What chance is drawn from.
    pub seed: u64,
    /// Something that is done to the store behind the application's back, after so many days: for tests of the judges.
    pub sabotage: Option<Sabotage>,
}

/// What a test does to the world behind the application's back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// A name's route leads to somebody else.
    RouteToStranger,
    /// A live claim is let go of that nobody gave up.
    LetGo,
    /// What was acknowledged is gone.
    Forget,
    /// A name becomes free while it leads to us.
    Free,
    /// Nothing is renewed, and what the receiver takes is never read.
    SwallowAlerts,
    /// Nothing is renewed, and what the receiver takes is read twice.
    DoubleAlerts,
    /// Whoever left is told nothing more.
    SilenceTheLeft,
    /// Certificates are not renewed.
    StopRenewals,
}

impl Sabotage {
    /// Without renewals there are alerts to be swallowed, or doubled.
    fn stops_renewals(self) -> bool {
        matches!(self, Sabotage::StopRenewals | Sabotage::SwallowAlerts | Sabotage::DoubleAlerts)
    }
}

impl YearOptions {
    /// A year of so many names at Let's Encrypt.
    pub fn of(domains: usize, seed: u64, start: Moment) -> Self {
        const WEEK: u64 = 7 * 86_400;
        YearOptions {
            domains,
            days: 365,
            certificate_days: 90,
            hostile_percent: 1,
            workers: 2,
            limits: CaLimits {
                orders: Limit { burst: 300, per_secs: 10_800 },
                registered_domain: Limit { burst: 50, per_secs: WEEK },
                exact_set: Limit { burst: 5, per_secs: WEEK },
            },
            latest: Duration::from_secs(4),
            start,
            seed,
            sabotage: None,
        }
    }
}
