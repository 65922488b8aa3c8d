//! A round of the dispatcher reads the heads of the lanes and the ledger under their names, and grants what the whole queue and
//! the whole ledger lead to.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use nameplate::app::account::ensure_all;
use nameplate::app::dispatch::round;
use nameplate::model::dispatch::{Waiting, dispatch};
use nameplate::model::id::{DomainId, IssuerId, OrderId, TenantId};
use nameplate::model::ledger::Limit;
use nameplate::model::limits::{self, LimitName, Limits, spends};
use nameplate::model::moment::Moment;
use nameplate::model::order::Lane;
use nameplate::store::fleet::queue;
use nameplate::store::heads::heads;
use nameplate::store::{Store, issuers, ledger, sql};

use crate::support::rig::Rig;
use crate::support::seed;
use crate::support::stores::{Kind, TestStore};

const TENANTS: u16 = 9;
const HELD: &str = "certificates_per_domain";

/// A crowded queue: lines of any length, in every lane, some of whose orders may not be placed yet, are held back or set aside;
/// tenants that had their turn, and one that is gone; keys that are used up, or were.
struct Crowd<'a> {
    rig: &'a Rig,
    issuer: IssuerId,
    orders: u16,
}

impl Crowd<'_> {
    async fn tenants(&self) {
        for n in 0..TENANTS {
            self.rig.app.store.execute(seed::tenant(&seed::tenant_id(n), &format!("t{n}"))).await.unwrap();
        }
        let gone = sql("UPDATE tenants SET status = 'deleted' WHERE id = $1").bind(seed::tenant_id(0).as_str());
        self.rig.app.store.execute(gone).await.unwrap();
    }

    fn below(&self, n: u64) -> u64 {
        self.rig.hand.below(n)
    }

    async fn order(&mut self, name: &str) {
        let (store, now) = (&self.rig.app.store, self.rig.env.now());
        let n = self.orders;
        self.orders += 1;
        // Few tenants have most of it.
        let most = self.below(u64::from(TENANTS)) + 1;
        let tenant = seed::tenant_id(u16::try_from(self.below(most)).unwrap());
        let (domain, order) = (seed::domain_id(n), OrderId::mint(now, seed::bytes(n)));
        let lane = Lane::ALL[usize::try_from(self.below(3)).unwrap()];
        let (not_before, held) = match self.below(10) {
            0 => (now + Duration::from_secs(self.below(300)), None),
            1 => (Moment::NEVER, None),
            2 => (now + Duration::from_secs(self.below(300)), Some(HELD)),
            3 => (now - Duration::from_secs(5), Some(HELD)),
            _ => (now, None),
        };
        store.execute(seed::domain(&domain, &tenant, name, Moment::NEVER)).await.unwrap();
        store.execute(seed::order(&order, &domain, &self.issuer, "first")).await.unwrap();
        // Within hours, within days, some day; two thirds of them on the days that count.
        let left = Duration::from_secs(3_600 * self.below(24 * 12));
        let ends = if lane == Lane::Renewal { now + left } else { Moment::NEVER };
        let stmt = sql("UPDATE orders SET lane = $2, not_before = $3, held_by = $4, ends_at = $5 WHERE id = $1")
            .bind(order.as_str())
            .bind(lane.as_str())
            .bind(not_before)
            .bind(held)
            .bind(ends);
        store.execute(stmt).await.unwrap();
    }

    /// The ledger says of a key that so many were spent just now.
    async fn spent(&self, limit: LimitName, key: &str, numbers: Limit, n: u32) {
        let stmt = sql("INSERT INTO ledger (issuer_id, limit_name, key, tat, refusals) VALUES ($1, $2, $3, $4, 0) \
             ON CONFLICT (issuer_id, limit_name, key) DO UPDATE SET tat = excluded.tat")
        .bind(self.issuer.as_str())
        .bind(limit.as_str())
        .bind(key)
        .bind(self.rig.env.now() + numbers.interval() * n);
        self.rig.app.store.execute(stmt).await.unwrap();
    }

    async fn turns(&self) {
        for n in 0..TENANTS {
            for lane in Lane::ALL.iter().filter(|_| self.below(2) == 0) {
                let stmt = sql("INSERT INTO turns (issuer_id, lane, tenant_id, served) VALUES ($1, $2, $3, $4)")
                    .bind(self.issuer.as_str())
                    .bind(lane.as_str())
                    .bind(seed::tenant_id(n).as_str())
                    .bind(i64::try_from(self.below(40)).unwrap());
                self.rig.app.store.execute(stmt).await.unwrap();
            }
        }
    }
}

/// Everything that has a place, read whole.
async fn everybody(store: &Store, issuer: &IssuerId) -> Vec<Waiting> {
    let mut tx = store.read().await.unwrap();
    queue::waiting(&mut tx, issuer).await.unwrap().into_iter().map(|row| row.waiting).collect()
}

/// What a round would grant that read everything.
async fn by_everything(rig: &Rig, issuer: &IssuerId) -> BTreeSet<OrderId> {
    let row = issuers::list(&rig.app.store).await.unwrap().into_iter().find(|row| row.id == *issuer).unwrap();
    let all = everybody(&rig.app.store, issuer).await;
    let mut tx = rig.app.store.read().await.unwrap();
    let spent = ledger::whole(&mut tx, issuer, rig.env.now()).await.unwrap();
    let turn = u64::try_from(row.granted).unwrap();
    dispatch(&all, &row.limits, &spent, turn, rig.env.now()).grants.into_iter().collect()
}

async fn granted(store: &Store) -> BTreeSet<OrderId> {
    let rows = store.query(sql("SELECT id FROM orders WHERE state = 'granted'")).await.unwrap();
    rows.iter().map(|row| row.parse("id").unwrap()).collect()
}

fn limits(burst: u32) -> Limits {
    let mut all = limits::usual();
    all.insert(LimitName::OrdersPerAccount, Limit { burst, per_secs: u64::from(burst) * 10 });
    all.insert(LimitName::CertificatesPerDomain, Limit { burst: 4, per_secs: 400 });
    all
}

async fn world(kind: Kind, seed: u64, burst: u32) -> (TestStore, Rig) {
    let test = TestStore::blank(kind).await;
    let rig = Rig::with_limits(seed, &test.url, limits(burst)).await;
    ensure_all(&rig.app).await.unwrap();
    (test, rig)
}

/// Databases, seeds, and how much the account may spend at once.
fn cases() -> Vec<(Kind, u64, u32)> {
    let memory = (0..12).map(|seed| (Kind::SqliteMemory, seed, 1 + u32::try_from(seed * 5 % 23).unwrap()));
    memory.chain([(Kind::Postgres, 3, 7), (Kind::Postgres, 4, 40)]).collect()
}

#[tokio::test]
async fn a_round_grants_what_the_whole_queue_and_ledger_lead_to() {
    let mut total = 0;
    for (kind, seed, burst) in cases() {
        let (test, rig) = world(kind, seed, burst).await;
        let issuer = issuers::list(&rig.app.store).await.unwrap().remove(0).id;
        let mut crowd = Crowd { rig: &rig, issuer: issuer.clone(), orders: 0 };
        crowd.tenants().await;
        crowd.turns().await;
        for n in 0..60 + crowd.below(140) {
            let name = format!("www.n{n}.example");
            crowd.order(&name).await;
            // Of every five names one has no room, and one has some.
            let per_name = LimitName::CertificatesPerName.usual();
            match crowd.below(5) {
                0 => crowd.spent(LimitName::CertificatesPerName, &name, per_name, per_name.burst + 1).await,
                1 => crowd.spent(LimitName::CertificatesPerName, &name, per_name, 1).await,
                _ => {}
            }
        }
        for n in 0..50 {
            crowd
                .spent(LimitName::CertificatesPerDomain, &format!("other{n}.example"), Limit { burst: 4, per_secs: 400 }, 2)
                .await;
        }
        for _ in 0..12 {
            let (want, before) = (by_everything(&rig, &issuer).await, granted(&rig.app.store).await);
            round(&rig.app).await.unwrap();
            let got: BTreeSet<OrderId> = granted(&rig.app.store).await.difference(&before).cloned().collect();
            assert_eq!(got, want, "{kind:?}, seed {seed}, {burst} at once, {:?}", rig.env.now());
            total += got.len();
            rig.hand.advance(Duration::from_secs(1 + rig.hand.below(45)));
        }
        drop(rig);
        test.remove().await;
    }
    assert!(total > 100, "{total} grants");
}

/// Renewals and single claims that wait in any number leave an import its two turns of ten, and each other theirs.
#[tokio::test]
async fn every_lane_has_its_share_of_what_the_account_may_spend() {
    for (kind, seed) in [(Kind::SqliteMemory, 21), (Kind::Postgres, 22)] {
        let (test, rig) = world(kind, seed, 10).await;
        let issuer = issuers::list(&rig.app.store).await.unwrap().remove(0).id;
        let mut crowd = Crowd { rig: &rig, issuer, orders: 0 };
        crowd.tenants().await;
        for n in 0..150 {
            crowd.order(&format!("www.n{n}.example")).await;
        }
        let (now, store) = (rig.env.now(), &rig.app.store);
        let all = sql("UPDATE orders SET not_before = $1, held_by = NULL");
        store.execute(all.bind(now)).await.unwrap();
        let alive = sql("UPDATE tenants SET status = 'active'");
        store.execute(alive).await.unwrap();
        for (n, order) in store.query(sql("SELECT id FROM orders ORDER BY id")).await.unwrap().iter().enumerate() {
            let stmt = sql("UPDATE orders SET lane = $2 WHERE id = $1").bind(order.text("id").unwrap());
            store.execute(stmt.bind(Lane::ALL[n % 3].as_str())).await.unwrap();
        }
        let of_lane = async |lane: Lane| {
            let stmt = sql("SELECT count(*) AS n FROM orders WHERE state = 'granted' AND lane = $1");
            rig.count(stmt.bind(lane.as_str())).await
        };
        for tens in 1..=5 {
            round(&rig.app).await.unwrap();
            let share = [of_lane(Lane::Renewal).await, of_lane(Lane::Single).await, of_lane(Lane::Bulk).await];
            assert_eq!(share, [5 * tens, 3 * tens, 2 * tens], "{kind:?}, after {tens} times ten");
            // Answered, and the bucket is full again.
            store.execute(sql("DELETE FROM spends")).await.unwrap();
            rig.hand.advance(Duration::from_secs(100));
        }
        drop(rig);
        test.remove().await;
    }
}

/// The orders of one lane in the order of their turns: the day on which what they replace ends, whoever was served longest ago, the
/// end itself, age.
fn turns_of<'a>(lane: impl Iterator<Item = &'a Waiting>, now: Moment) -> Vec<&'a OrderId> {
    type Line<'a> = BTreeSet<(Moment, &'a OrderId)>;
    let mut lines: BTreeMap<&TenantId, (u64, Line<'_>)> = BTreeMap::new();
    for w in lane {
        lines.entry(&w.tenant_id).or_insert((w.served, BTreeSet::new())).1.insert((w.ends, &w.order_id));
    }
    let day = |ends: Moment| ends.since(now).as_secs().div_ceil(86_400).min(8);
    let mut turns = Vec::new();
    while let Some((served, line)) = lines
        .values_mut()
        .filter(|(_, line)| !line.is_empty())
        .min_by_key(|(served, line)| line.first().map(|(ends, id)| (day(*ends), *served, *ends, *id)))
    {
        turns.extend(line.pop_first().map(|(_, id)| id));
        *served = 1_000_000 + u64::try_from(turns.len()).unwrap();
    }
    turns
}

/// Where tenants and lanes share registered domains, who comes first may depend on who is read; nothing goes beyond a limit, and
/// nobody waits while there is room.
#[tokio::test]
async fn shared_domains_are_served_within_their_limits_to_the_last() {
    for (kind, seed, burst) in cases() {
        let (test, rig) = world(kind, seed, burst).await;
        let issuer = issuers::list(&rig.app.store).await.unwrap().remove(0).id;
        let mut crowd = Crowd { rig: &rig, issuer: issuer.clone(), orders: 0 };
        crowd.tenants().await;
        for n in 0..60 {
            let name = format!("n{n}.d{}.example", crowd.below(6));
            crowd.order(&name).await;
        }
        for _ in 0..10 {
            let before = granted(&rig.app.store).await;
            let mut tx = rig.app.store.read().await.unwrap();
            let spent = ledger::whole(&mut tx, &issuer, rig.env.now()).await.unwrap();
            drop(tx);
            let (all, want) = (everybody(&rig.app.store, &issuer).await, by_everything(&rig, &issuer).await);
            round(&rig.app).await.unwrap();
            let got: BTreeSet<OrderId> = granted(&rig.app.store).await.difference(&before).cloned().collect();
            let mut used: HashMap<(LimitName, String), u32> = HashMap::new();
            let limits = limits(burst);
            for w in all.iter().filter(|w| got.contains(&w.order_id)) {
                assert!(w.not_before <= rig.env.now());
                for (limit, _, key) in spends(&limits, &w.name) {
                    *used.entry((limit, key.to_owned())).or_default() += 1;
                }
            }
            for (key, n) in used {
                let room = spent.get(&key).copied().unwrap_or_default().available(limits[&key.0], rig.env.now());
                assert!(n <= room, "{kind:?}, seed {seed}: {n} of {key:?}, which had room for {room}");
            }
            assert_eq!(got.len(), want.len(), "{kind:?}, seed {seed}, {burst} at once");
            rig.hand.advance(Duration::from_secs(30));
        }
        drop(rig);
        test.remove().await;
    }
}

#[tokio::test]
async fn the_heads_are_the_first_of_each_lane_in_the_order_of_its_turns() {
    for (kind, seed, burst) in cases() {
        let (test, rig) = world(kind, seed, burst).await;
        let issuer = issuers::list(&rig.app.store).await.unwrap().remove(0).id;
        let mut crowd = Crowd { rig: &rig, issuer: issuer.clone(), orders: 0 };
        crowd.tenants().await;
        crowd.turns().await;
        for n in 0..120 {
            crowd.order(&format!("n{n}.example")).await;
        }
        let now = rig.env.now();
        let aside: BTreeSet<OrderId> =
            (rig.app.store.query(sql("SELECT id FROM orders WHERE held_by IS NOT NULL")).await.unwrap().iter())
                .map(|row| row.parse("id").unwrap())
                .collect();
        let all = everybody(&rig.app.store, &issuer).await;
        let in_line = |w: &&Waiting| w.not_before <= now && !aside.contains(&w.order_id);
        for most in [1, 2, 5, 40, 1_000] {
            let mut tx = rig.app.store.read().await.unwrap();
            let read = heads(&mut tx, &issuer, now, most).await.unwrap();
            drop(tx);
            assert!(read.windows(2).all(|w| w[0].waiting.order_id < w[1].waiting.order_id));
            for head in &read {
                assert!(all.iter().filter(in_line).any(|w| *w == head.waiting), "{:?} is in no line", head.waiting);
                let owner = sql("SELECT domain_id FROM orders WHERE id = $1").bind(head.waiting.order_id.as_str());
                let owner: DomainId = rig.app.store.query(owner).await.unwrap()[0].parse("domain_id").unwrap();
                assert_eq!(owner, head.domain_id);
            }
            for lane in Lane::ALL {
                let turns = turns_of(all.iter().filter(in_line).filter(|w| w.lane == *lane), now);
                let read: BTreeSet<&OrderId> =
                    read.iter().filter(|h| h.waiting.lane == *lane).map(|h| &h.waiting.order_id).collect();
                let first: Vec<_> = turns.iter().take(usize::try_from(most).unwrap()).collect();
                assert!(first.iter().all(|id| read.contains(*id)), "{kind:?}, seed {seed}: {most} of {lane}");
            }
        }
        drop(rig);
        test.remove().await;
    }
}
