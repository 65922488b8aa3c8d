//! What an import will take: how many orders, which registered domains run into their limit, and when it is through.
//!
//! The same GCRA as the ledger's, walked order by order as the dispatcher does: each goes out at the first moment that both the
//! account and its registered domain allow, in the order of the rows; who finds no room under its domain is set aside until there
//! is, and is then before all that come later. It takes for granted that every name is set up right, that nobody else orders in the
//! meantime, and that what waits already goes first; so it is the earliest honest end, and says so.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};

use serde::{Deserialize, Serialize};

use super::ledger::{Bucket, Limit, settle};
use super::moment::Moment;

/// Points of the curve at most.
const POINTS: usize = 48;
/// Registered domains that a plan names at most; the slowest ones.
const NAMED: usize = 50;

/// Names under one registered domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crowd {
    /// The registered domain.
    pub registered: String,
    /// Names of the import under it.
    pub names: u64,
    /// What its limit has been used for; open is what is under way there, and who waits there already.
    pub bucket: Bucket,
}

/// What a plan is made from.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The names that need an order, in the order of their rows: which of the crowds each is in, if it is in one.
    pub order: Vec<Option<u32>>,
    /// Registered domains they are under.
    pub registered_domains: u64,
    /// Those registered domains whose names may have to wait for each other: too many, or used before. All others are free.
    pub crowds: Vec<Crowd>,
    /// Orders that wait already for what the account may spend.
    pub ahead: u64,
    /// The account's limit on orders, and what is used of it; none when the issuer has none.
    pub account: Option<(Limit, Bucket)>,
    /// The limit on certificates under one registered domain; none when the issuer has none.
    pub per_domain: Option<Limit>,
}

/// A registered domain that makes its names wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collision {
    /// Which.
    pub registered_domain: String,
    /// Names of the import under it.
    pub names: u64,
    /// How many of them need not wait for the limit.
    pub at_once: u64,
    /// When the last of them is ordered.
    pub last_at: Moment,
}

/// How far the import is at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// When.
    pub at: Moment,
    /// Orders made by then.
    pub orders: u64,
}

/// A plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// When it was made.
    pub made_at: Moment,
    /// Orders needed.
    pub orders: u64,
    /// Orders that wait already and go first.
    pub ahead: u64,
    /// Registered domains the names are under.
    pub registered_domains: u64,
    /// When the first order can be made.
    pub first_at: Option<Moment>,
    /// When the last one can, if all names are set up right and nothing else comes between.
    pub last_at: Option<Moment>,
    /// When the last one could, if only the account's limit counted.
    pub account_last_at: Option<Moment>,
    /// Registered domains that make names wait.
    pub colliding: u64,
    /// The slowest of them.
    pub collisions: Vec<Collision>,
    /// The way there.
    pub curve: Vec<Point>,
}

/// The account, as it is used up.
struct Account {
    limit: Option<Limit>,
    bucket: Bucket,
}

impl Account {
    fn new(account: Option<(Limit, Bucket)>, ahead: u64, now: Moment) -> Account {
        let Some((limit, bucket)) = account else {
            return Account { limit: None, bucket: Bucket { tat: now, ..Bucket::default() } };
        };
        let waiting = u32::try_from(ahead).unwrap_or(u32::MAX).saturating_add(bucket.open);
        let tat = bucket.tat.max(now) + limit.interval().saturating_mul(waiting);
        Account { limit: Some(limit), bucket: Bucket { tat, open: 0, ..bucket } }
    }

    /// The next order's moment, not before `at`.
    fn earliest(&self, at: Moment) -> Moment {
        self.bucket.opens_at(self.limit, at)
    }

    fn spend(&mut self, at: Moment) {
        if let Some(limit) = self.limit {
            self.bucket.tat = settle(self.bucket.tat, at, limit);
        }
    }
}

/// A registered domain on its way.
struct Walk {
    bucket: Bucket,
    /// Names that were set aside, by their places.
    line: VecDeque<usize>,
    /// Names that found their limit open from the start.
    at_once: u64,
    last_at: Moment,
}

/// The walk over all names.
struct Walker<'a> {
    asked: &'a Asked,
    account: Account,
    walks: Vec<Walk>,
    /// Crowds with names set aside, by when there is room for the next.
    rooms: BinaryHeap<Reverse<(Moment, usize)>>,
    /// Those that have room, by the place of their first name.
    open: BTreeSet<(usize, usize)>,
    next: usize,
}

impl Walker<'_> {
    /// The crowd of the name at this place; none where no limit makes it wait.
    fn crowd(&self, place: usize) -> Option<usize> {
        self.asked.per_domain?;
        usize::try_from((*self.asked.order.get(place)?)?).ok().filter(|n| *n < self.walks.len())
    }

    fn room(&self, crowd: usize, at: Moment) -> Moment {
        self.asked.per_domain.map_or(at, |limit| self.walks[crowd].bucket.earliest(limit, at))
    }

    /// Who is next, and when; nobody when all have gone.
    fn step(&mut self, now: Moment) -> Option<(Moment, Option<usize>)> {
        let mut at = self.account.earliest(now);
        loop {
            while let Some(Reverse((_, crowd))) = self.rooms.peek().copied().filter(|Reverse((room, _))| *room <= at) {
                self.rooms.pop();
                self.open.extend(self.walks[crowd].line.front().map(|place| (*place, crowd)));
            }
            if let Some((_, crowd)) = self.open.pop_first() {
                self.walks[crowd].line.pop_front();
                return Some((at, Some(crowd)));
            }
            if self.next < self.asked.order.len() {
                let (place, crowd) = (self.next, self.crowd(self.next));
                self.next += 1;
                let Some(crowd) = crowd else { return Some((at, None)) };
                let room = self.room(crowd, at);
                if room <= at && self.walks[crowd].line.is_empty() {
                    return Some((at, Some(crowd)));
                }
                if self.walks[crowd].line.is_empty() {
                    self.rooms.push(Reverse((room, crowd)));
                }
                self.walks[crowd].line.push_back(place);
            } else {
                let Reverse((room, _)) = self.rooms.peek()?;
                at = at.max(*room);
            }
        }
    }

    /// The order goes out.
    fn go(&mut self, at: Moment, crowd: Option<usize>, now: Moment) {
        self.account.spend(at);
        let (Some(n), Some(limit)) = (crowd, self.asked.per_domain) else { return };
        let walk = &mut self.walks[n];
        walk.at_once += u64::from(walk.bucket.earliest(limit, now) <= now);
        walk.bucket.tat = settle(walk.bucket.tat, at, limit);
        walk.last_at = at;
        if !walk.line.is_empty() {
            self.rooms.push(Reverse((walk.bucket.earliest(limit, at), n)));
        }
    }
}

/// Makes the plan.
pub fn plan(asked: &Asked, now: Moment) -> Plan {
    let per_domain = asked.per_domain;
    let orders = u64::try_from(asked.order.len()).unwrap_or(u64::MAX);
    let walk = |crowd: &Crowd| {
        let bucket = per_domain.map_or(crowd.bucket, |limit| crowd.bucket.as_if_answered(limit, now));
        Walk { bucket, line: VecDeque::new(), at_once: 0, last_at: now }
    };
    let mut walker = Walker {
        asked,
        account: Account::new(asked.account, asked.ahead, now),
        walks: asked.crowds.iter().map(walk).collect(),
        rooms: BinaryHeap::new(),
        open: BTreeSet::new(),
        next: 0,
    };
    let mut moments = Curve::new(orders);
    while let Some((at, crowd)) = walker.step(now) {
        walker.go(at, crowd, now);
        moments.add(at);
    }
    let walks = walker.walks;
    let mut collisions: Vec<Collision> = asked
        .crowds
        .iter()
        .zip(&walks)
        .filter(|(crowd, walk)| walk.at_once < crowd.names && per_domain.is_some())
        .map(|(crowd, walk)| Collision {
            registered_domain: crowd.registered.clone(),
            names: crowd.names,
            at_once: walk.at_once,
            last_at: walk.last_at,
        })
        .collect();
    let colliding = u64::try_from(collisions.len()).unwrap_or(u64::MAX);
    collisions.sort_by(|a, b| b.last_at.cmp(&a.last_at).then_with(|| a.registered_domain.cmp(&b.registered_domain)));
    collisions.truncate(NAMED);
    let alone = Account::new(asked.account, asked.ahead.saturating_add(orders.saturating_sub(1)), now);
    let account_last_at = (orders > 0).then(|| alone.earliest(now));
    Plan {
        made_at: now,
        orders,
        ahead: asked.ahead,
        registered_domains: asked.registered_domains,
        first_at: moments.first,
        last_at: moments.last,
        account_last_at,
        colliding,
        collisions,
        curve: moments.points,
    }
}

/// Moments come in order or nearly so; the curve keeps a few of them.
struct Curve {
    every: u64,
    all: u64,
    count: u64,
    first: Option<Moment>,
    last: Option<Moment>,
    points: Vec<Point>,
}

impl Curve {
    fn new(all: u64) -> Curve {
        let every = all.div_ceil(u64::try_from(POINTS).unwrap_or(1)).max(1);
        Curve { every, all, count: 0, first: None, last: None, points: Vec::new() }
    }

    fn add(&mut self, at: Moment) {
        self.count += 1;
        self.first = Some(self.first.map_or(at, |first| first.min(at)));
        let last = self.last.map_or(at, |last| last.max(at));
        self.last = Some(last);
        if self.count == 1 || self.count.is_multiple_of(self.every) || self.count == self.all {
            self.points.push(Point { at: last, orders: self.count });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::time::Duration;

    use super::*;

    const ACCOUNT: Limit = Limit { burst: 300, per_secs: 10_800 };
    const WEEKLY: Limit = Limit { burst: 50, per_secs: 604_800 };
    const NOW: Moment = Moment::from_secs(1_800_000_000);
    const FRESH: Bucket = Bucket { tat: NOW, open: 0, closed_until: NOW };

    /// Names in crowds in turns, those in none behind them.
    fn asked(orders: usize, registered_domains: u64, crowds: Vec<Crowd>) -> Asked {
        let (account, per_domain) = (Some((ACCOUNT, FRESH)), Some(WEEKLY));
        let most = crowds.iter().map(|c| c.names).max().unwrap_or(0);
        let in_turns = (0..most).flat_map(|nth| {
            let of = crowds.iter().enumerate().filter(move |(_, c)| nth < c.names);
            of.map(|(n, _)| Some(u32::try_from(n).unwrap())).collect::<Vec<_>>()
        });
        let mut order: Vec<Option<u32>> = in_turns.collect();
        order.resize(orders, None);
        Asked { order, registered_domains, crowds, ahead: 0, account, per_domain }
    }

    fn crowd(n: usize, names: u64) -> Crowd {
        Crowd { registered: format!("d{n}.example"), names, bucket: FRESH }
    }

    fn after(secs: u64) -> Option<Moment> {
        Some(NOW + Duration::from_secs(secs))
    }

    #[test]
    fn ten_thousand_domains_of_their_own_take_what_the_account_allows() {
        let made = plan(&asked(10_000, 10_000, vec![]), NOW);
        assert_eq!((made.first_at, made.last_at), (Some(NOW), after(9_700 * 36)));
        assert_eq!((made.account_last_at, made.colliding), (made.last_at, 0));
        assert!(made.curve.len() <= POINTS + 2 && made.curve.last().unwrap().orders == 10_000);
        assert!(made.curve.windows(2).all(|w| w[0].at <= w[1].at && w[0].orders < w[1].orders));
    }

    #[test]
    fn ten_thousand_names_under_forty_domains_take_what_fifty_a_week_make_of_it() {
        let made = plan(&asked(10_000, 40, (0..40).map(|n| crowd(n, 250)).collect()), NOW);
        // 250 under each: 50 at once, then one in 3 h 21 min 36 s; the account is no bound by then.
        let last = made.last_at.unwrap().since(NOW).as_secs();
        assert!((200 * 12_096..=200 * 12_096 + 40 * 36 * 50).contains(&last), "{last}");
        assert_eq!((made.colliding, made.collisions.len()), (40, 40));
        assert!(
            made.collisions.iter().all(|c| c.names == 250 && c.at_once >= 50 && c.at_once < 52),
            "{:?}",
            made.collisions[0]
        );
        assert!(made.account_last_at.unwrap() < made.last_at.unwrap());
    }

    #[test]
    fn what_waits_already_and_what_is_used_already_comes_first() {
        let mut first = asked(10, 10, vec![]);
        first.ahead = 300;
        assert_eq!(plan(&first, NOW).first_at, after(36));
        let used = Crowd { bucket: Bucket { tat: NOW + Duration::from_secs(604_800), ..FRESH }, ..crowd(1, 2) };
        let made = plan(&asked(2, 1, vec![used]), NOW);
        assert_eq!((made.first_at, made.last_at), (after(12_096), after(2 * 12_096)));
        assert_eq!((made.colliding, made.collisions[0].at_once), (1, 0));
        let none = plan(&asked(0, 0, vec![]), NOW);
        assert_eq!((none.first_at, none.last_at, none.account_last_at, none.curve.len()), (None, None, None, 0));
        let unlimited = Asked { account: None, per_domain: None, ..asked(500, 1, vec![crowd(1, 500)]) };
        let made = plan(&unlimited, NOW);
        assert_eq!((made.last_at, made.colliding), (Some(NOW), 0));
    }

    /// Whoever stands at the end of the file comes at the end, in a hurry or not.
    #[test]
    fn names_go_in_the_order_of_their_rows() {
        let with = |crowd_first: bool| {
            let mut asked = asked(5_060, 5_001, vec![crowd(0, 60)]);
            if !crowd_first {
                asked.order.reverse();
            }
            plan(&asked, NOW)
        };
        // Ten more than fifty need ten refills, during which the others go; or after which nothing is left to do.
        assert_eq!(with(true).last_at, after((5_060 - 300) * 36));
        let last = with(false).last_at.unwrap().since(NOW).as_secs();
        let begins = (5_000 - 300) * 36;
        assert!((begins + 9 * 12_096..begins + 11 * 12_096).contains(&last), "{last}");
    }

    proptest! {
        /// Every order has its place, none before a limit allows it, and the end is no later than one limit after the other.
        #[test]
        fn the_plan_keeps_the_limits(
            free in 0_usize..400, sizes in proptest::collection::vec(1_u64..200, 0..6), burst in 1_u32..40, weekly in 1_u32..20,
        ) {
            let (account, per_domain) = (Limit { burst, per_secs: 3_600 }, Limit { burst: weekly, per_secs: 36_000 });
            let crowds: Vec<Crowd> = sizes.iter().enumerate().map(|(n, names)| crowd(n, *names)).collect();
            let orders = u64::try_from(free).unwrap() + sizes.iter().sum::<u64>();
            let made = plan(&Asked {
                account: Some((account, FRESH)), per_domain: Some(per_domain), ..asked(usize::try_from(orders).unwrap(), 6, crowds)
            }, NOW);
            prop_assert_eq!(made.curve.last().map_or(0, |p| p.orders), orders);
            let alone = |limit: Limit, n: u64| limit.interval() * u32::try_from(n.saturating_sub(u64::from(limit.burst))).unwrap();
            let largest = sizes.iter().copied().max().unwrap_or(0);
            let floor = alone(account, orders).max(alone(per_domain, largest));
            let took = made.last_at.map_or(Duration::ZERO, |at| at.since(NOW));
            // Intervals are rounded to microseconds.
            prop_assert!(took + Duration::from_millis(1) >= floor, "{took:?} {floor:?}");
            prop_assert!(took <= alone(account, orders) + alone(per_domain, largest) + account.interval() * u32::try_from(orders).unwrap());
        }
    }
}
