//! What an import will take: how many orders, which registered domains run into their limit, and when it is through.
//!
//! The same GCRA as the ledger's, walked order by order: each goes out at the first moment that both the account and its
//! registered domain allow, the domain that is free first and has most left being first. It takes for granted that every name
//! is set up right, that nobody else orders in the meantime, and that what waits already goes first; so it is the earliest
//! honest end, and says so.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

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
    /// What its limit has been used for.
    pub bucket: Bucket,
}

/// What a plan is made from.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Names that need an order, all together.
    pub orders: u64,
    /// Registered domains they are under.
    pub registered_domains: u64,
    /// Those registered domains whose names may have to wait for each other: too many, or used before. All others are free.
    pub crowds: Vec<Crowd>,
    /// Orders that wait already.
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
            return Account { limit: None, bucket: Bucket { tat: now, open: 0 } };
        };
        let waiting = u32::try_from(ahead).unwrap_or(u32::MAX).saturating_add(bucket.open);
        let tat = bucket.tat.max(now) + limit.interval().saturating_mul(waiting);
        Account { limit: Some(limit), bucket: Bucket { tat, open: 0 } }
    }

    /// The next order's moment, not before `at`.
    fn take(&mut self, at: Moment) -> Moment {
        let Some(limit) = self.limit else { return at };
        let at = self.bucket.earliest(limit, at);
        self.bucket.tat = settle(self.bucket.tat, at, limit);
        at
    }
}

/// A registered domain on its way.
struct Walk {
    left: u64,
    bucket: Bucket,
    /// Names that found their limit open from the start.
    at_once: u64,
    last_at: Moment,
}

/// Makes the plan.
pub fn plan(asked: &Asked, now: Moment) -> Plan {
    let mut account = Account::new(asked.account, asked.ahead, now);
    let per_domain = asked.per_domain;
    let crowded: u64 = if per_domain.is_some() { asked.crowds.iter().map(|c| c.names).sum() } else { 0 };
    let mut free = asked.orders.saturating_sub(crowded);
    let mut walks: Vec<Walk> =
        asked.crowds.iter().map(|c| Walk { left: c.names, bucket: c.bucket, at_once: 0, last_at: now }).collect();
    let mut heap = BinaryHeap::new();
    if let Some(limit) = per_domain {
        for (n, walk) in walks.iter_mut().enumerate() {
            walk.bucket.tat = walk.bucket.tat.max(now) + limit.interval().saturating_mul(walk.bucket.open);
            walk.bucket.open = 0;
            heap.push((Reverse(walk.bucket.earliest(limit, now)), walk.left, n));
        }
    }
    let mut moments = Curve::new(asked.orders);
    loop {
        // A name without a limit of its own goes whenever no crowded domain is free: the crowded ones are the ones in a hurry.
        let ready = account.limit.map_or(now, |limit| account.bucket.earliest(limit, now));
        let crowd_first = heap.peek().is_some_and(|(Reverse(at), ..)| *at <= ready || free == 0);
        if crowd_first && let (Some((Reverse(at), _, n)), Some(limit)) = (heap.pop(), per_domain) {
            let Some(walk) = walks.get_mut(n) else { break };
            if walk.left == 0 {
                continue;
            }
            let when = account.take(at.max(now));
            walk.bucket.tat = settle(walk.bucket.tat, when, limit);
            walk.left -= 1;
            walk.at_once += u64::from(at <= now);
            walk.last_at = when;
            moments.add(when);
            if walk.left > 0 {
                heap.push((Reverse(walk.bucket.earliest(limit, now)), walk.left, n));
            }
        } else if free > 0 {
            free -= 1;
            moments.add(account.take(now));
        } else {
            break;
        }
    }
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
    let mut alone = Account::new(asked.account, asked.ahead.saturating_add(asked.orders.saturating_sub(1)), now);
    let account_last_at = (asked.orders > 0).then(|| alone.take(now));
    Plan {
        made_at: now,
        orders: asked.orders,
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
    const FRESH: Bucket = Bucket { tat: NOW, open: 0 };

    fn asked(orders: u64, registered_domains: u64, crowds: Vec<Crowd>) -> Asked {
        let (account, per_domain) = (Some((ACCOUNT, FRESH)), Some(WEEKLY));
        Asked { orders, registered_domains, crowds, ahead: 0, account, per_domain }
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
        let used = Crowd { bucket: Bucket { tat: NOW + Duration::from_secs(604_800), open: 0 }, ..crowd(1, 2) };
        let made = plan(&asked(2, 1, vec![used]), NOW);
        assert_eq!((made.first_at, made.last_at), (after(12_096), after(2 * 12_096)));
        assert_eq!((made.colliding, made.collisions[0].at_once), (1, 0));
        let none = plan(&asked(0, 0, vec![]), NOW);
        assert_eq!((none.first_at, none.last_at, none.account_last_at, none.curve.len()), (None, None, None, 0));
        let unlimited = Asked { account: None, per_domain: None, ..asked(500, 1, vec![crowd(1, 500)]) };
        let made = plan(&unlimited, NOW);
        assert_eq!((made.last_at, made.colliding), (Some(NOW), 0));
    }

    proptest! {
        /// Every order has its place, none before a limit allows it, and the end is no later than one limit after the other.
        #[test]
        fn the_plan_keeps_the_limits(
            free in 0_u64..400, sizes in proptest::collection::vec(1_u64..200, 0..6), burst in 1_u32..40, weekly in 1_u32..20,
        ) {
            let (account, per_domain) = (Limit { burst, per_secs: 3_600 }, Limit { burst: weekly, per_secs: 36_000 });
            let crowds: Vec<Crowd> = sizes.iter().enumerate().map(|(n, names)| crowd(n, *names)).collect();
            let orders = free + sizes.iter().sum::<u64>();
            let made = plan(&Asked {
                account: Some((account, FRESH)), per_domain: Some(per_domain), ..asked(orders, free + 6, crowds)
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
