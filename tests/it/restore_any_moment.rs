//! A copy that was taken at any moment of a running system, put back days later, and put back once more: no certificate is ordered
//! twice, nothing that was let go of comes back, nothing is newly served before its records were seen again, and edges lose nothing
//! before an operator says so.
//!
//! `NAMEPLATE_RESTORE_SEEDS=100 cargo test --test it restore_any_moment` tries more moments.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use nameplate::app::restore::RestoreError;
use nameplate::app::{self, remove, restore};
use nameplate::env::Env;
use nameplate::model::id::{DomainId, TenantId};
use nameplate::model::limits::Counted;
use nameplate::model::moment::Moment;
use nameplate::store::{OpenSettings, Store, sql};

use crate::restore::postgres;
use crate::support::book::{KeptBook, ServedFor};
use crate::support::rig::Rig;
use crate::support::stores::{Kind, TestStore};

const HOUR: Duration = Duration::from_secs(3600);
/// Live before the copy and ever after.
const OLD: &str = "old.acme.test";
/// On its way when the copy is made, live afterwards.
const FLIGHT: &str = "flight.acme.test";
/// The same, and removed after that, with its records left where they were.
const FLOWN: &str = "flown.acme.test";
/// On its way when the copy is made; its ownership record goes before it is live.
const READY: &str = "ready.acme.test";
/// Live when the copy is made, removed afterwards, with its records left where they were.
const DROPPED: &str = "dropped.acme.test";
/// Live when the copy is made, and handed over to another tenant afterwards.
const MOVED: &str = "moved.acme.test";
/// Claimed after the copy was made.
const LATE: &str = "late.acme.test";
/// Claimed before the copy; its records come while the system recovers.
const COMING: &str = "coming.acme.test";
const ALL: [&str; 8] = [OLD, FLIGHT, FLOWN, READY, DROPPED, MOVED, LATE, COMING];

struct Tale {
    rig: Rig,
    book: KeptBook,
    acme: TenantId,
    beta: TenantId,
    seed: u64,
}

impl Tale {
    fn draw(&self, below: u64) -> u64 {
        self.rig.hand.below(below)
    }

    async fn published(&self, tenant: &TenantId, name: &str) -> DomainId {
        let id = self.rig.claim(tenant, name).await;
        self.rig.publish(&id, name).await;
        id
    }

    async fn live(&self, tenant: &TenantId, name: &str) -> DomainId {
        let id = self.published(tenant, name).await;
        self.rig.until_active(&id, 4 * HOUR).await;
        id
    }

    /// Everything that runs, for one turn.
    async fn turn(&mut self) {
        self.rig.turn().await;
        app::routine::batch(&self.rig.app).await.unwrap();
        app::resting::round(&self.rig.app).await.unwrap();
        self.book.follow(&self.rig).await.unwrap();
    }

    async fn pass(&mut self, time: Duration) {
        self.rig.stride(4 * HOUR);
        let end = self.rig.env.now() + time;
        while self.rig.env.now() < end {
            self.turn().await;
        }
    }

    /// How many orders the CA took for each name.
    fn orders(&self) -> BTreeMap<String, usize> {
        let mut orders = BTreeMap::new();
        for (what, of, _) in self.rig.ca.counted() {
            *orders.entry(of.to_string()).or_insert(0) += usize::from(what == Counted::Order);
        }
        orders
    }

    async fn routed(&self) -> Vec<String> {
        let stmt = sql("SELECT hostname FROM routes WHERE action = 'serve' AND domain_id IS NOT NULL ORDER BY hostname");
        self.rig.app.store.query(stmt).await.unwrap().iter().map(|row| row.text("hostname").unwrap()).collect()
    }

    async fn claim_of(&self, tenant: &TenantId, name: &str) -> Option<DomainId> {
        let stmt = sql("SELECT id FROM domains WHERE tenant_id = $1 AND hostname = $2 ORDER BY id LIMIT 1");
        let rows = self.rig.app.store.query(stmt.bind(tenant.as_str()).bind(name)).await.unwrap();
        rows.first().map(|row| row.parse("id").unwrap())
    }

    /// What must hold at every moment of a recovery: edges serve what they served, with what they served it with, and of the other
    /// names only what was seen since; and the CA is asked for nothing that edges have.
    async fn recovers(&self, before: &BTreeMap<&str, ServedFor>, orders: &BTreeMap<String, usize>, since: Option<Moment>) {
        let ordered = self.orders();
        // What edges told is settled since then: what is stored is in line with it.
        let routed = if since.is_some() { self.routed().await } else { Vec::new() };
        for name in ALL {
            let (was, is) = (before.get(name), self.book.served(name));
            if let Some(was) = was {
                assert_eq!(is.as_ref(), Some(was), "seed {}: {name} is not served as it was", self.seed);
            }
            if name != COMING || was.is_some() {
                assert_eq!(ordered.get(name), orders.get(name), "seed {}: {name} was ordered a second time", self.seed);
            }
            if was.is_some() || (is.is_none() && !routed.iter().any(|r| r == name)) {
                continue;
            }
            assert_eq!(name, COMING, "seed {}: {name} came back: {is:?}", self.seed);
            let looked = sql("SELECT looked_at FROM domains WHERE hostname = $1 AND claim = 'live'").bind(name);
            let looked = self.rig.app.store.query(looked).await.unwrap();
            assert!(looked[0].moment("looked_at").ok() >= since, "seed {}: routed unseen", self.seed);
        }
    }
}

/// Up to the copy: names that are live, and names at every stage of their way there.
async fn until_the_copy(seed: u64, url: &str) -> Tale {
    let rig = Rig::on(seed, url).await;
    let (acme, beta) = (rig.tenant("acme").await, rig.tenant("beta").await);
    let mut tale = Tale { rig, book: KeptBook::default(), acme, beta, seed };
    let acme = tale.acme.clone();
    for name in [OLD, DROPPED, MOVED] {
        tale.live(&acme, name).await;
    }
    tale.rig.claim(&acme, COMING).await;
    let beta = tale.beta.clone();
    if tale.draw(2) == 0 {
        tale.rig.claim(&beta, MOVED).await;
    }
    tale.book.follow(&tale.rig).await.unwrap();
    for name in [FLIGHT, FLOWN, READY] {
        tale.published(&acme, name).await;
        tale.rig.turn().await;
    }
    // A worker dies somewhere on their way.
    let moment = 1 + tale.draw(60) as usize;
    tale.rig.scissors.set(moment);
    let mut turns = 0;
    while !tale.rig.turn().await && turns < 40 {
        turns += 1;
    }
    tale.rig.scissors.set(0);
    tale
}

/// From the copy to the day on which the database is lost.
async fn after_the_copy(tale: &mut Tale) {
    let (acme, beta) = (tale.acme.clone(), tale.beta.clone());
    let ready = tale.claim_of(&acme, READY).await.unwrap();
    tale.rig.unpublish_txt(&ready, READY).await;
    let (old, next) = (tale.claim_of(&acme, MOVED).await.unwrap(), tale.rig.claim(&beta, MOVED).await);
    tale.rig.unpublish_txt(&old, MOVED).await;
    tale.rig.zones.remove(&format!("{MOVED}. 60 IN CNAME acme.app.example.")).unwrap();
    tale.rig.publish(&next, MOVED).await;
    let mut acts = vec![LATE, DROPPED, FLOWN];
    while !acts.is_empty() {
        let name = acts.remove(tale.draw(acts.len() as u64) as usize);
        if name == LATE {
            tale.live(&acme, LATE).await;
        } else {
            let id = tale.claim_of(&acme, name).await.unwrap();
            tale.rig.until_active(&id, 4 * HOUR).await;
            remove::remove(&tale.rig.app, &id, "tenant").await.unwrap();
        }
        let hours = tale.draw(9) as u32;
        tale.pass(HOUR * hours).await;
    }
    let id = tale.claim_of(&acme, FLIGHT).await.unwrap();
    tale.rig.until_active(&id, 4 * HOUR).await;
    tale.rig.until_active(&next, 90 * HOUR).await;
    if tale.rig.domain_text(&ready, "claim").await.unwrap() == "live" {
        // Its certificate was signed already: then it is one more that is removed.
        remove::remove(&tale.rig.app, &ready, "tenant").await.unwrap();
    }
    tale.pass(HOUR).await;
    let served = tale.book.all(&ALL);
    let names: Vec<&str> = served.keys().copied().collect();
    assert_eq!(names, [FLIGHT, LATE, MOVED, OLD], "seed {}", tale.seed);
    assert_eq!(served[MOVED].tenant, beta, "the name moved");
}

/// The copy is put back, recovers, and the recovery is ended.
async fn put_back(tale: &mut Tale, store: Store) {
    tale.rig.app.store = store;
    tale.rig.queue.clear();
    tale.rig.hand.advance(Duration::from_secs(60 + tale.draw(3_600)));
    let (before, orders) = (tale.book.all(&ALL), tale.orders());
    // Twice, as somebody does who is not sure.
    for _ in 0..=tale.draw(2) {
        tale.rig.hand.advance(Duration::from_secs(1));
        restore::begin(&tale.rig.app.store, &tale.rig.env).await.unwrap();
    }
    let since = tale.rig.env.now();
    tale.rig.distribute_a_key().await;
    assert!(tale.book.follow(&tale.rig).await.unwrap(), "edges are told that it recovers");
    tale.recovers(&before, &orders, None).await;
    tale.rig.hand.advance(Duration::from_secs(1));
    let early = restore::end(&tale.rig.app.store, &tale.rig.env, None, "operator").await;
    assert!(matches!(early, Err(RestoreError::Unsettled(_))), "seed {}: {early:?}", tale.seed);
    for _ in 0..tale.draw(3) {
        tale.turn().await;
        tale.recovers(&before, &orders, None).await;
    }
    while restore::settle(&tale.rig.app).await.unwrap() > 0 {}
    let coming = tale.claim_of(&tale.acme, COMING).await.unwrap();
    let publish_at = since + HOUR * tale.draw(8) as u32;
    let end = since + 12 * HOUR;
    let mut published = before.contains_key(COMING);
    while tale.rig.env.now() < end {
        if !published && tale.rig.env.now() >= publish_at {
            published = true;
            tale.rig.publish(&coming, COMING).await;
            app::check::check_now(&tale.rig.app, &coming, "tenant").await.unwrap();
        }
        tale.turn().await;
        tale.recovers(&before, &orders, Some(since)).await;
    }
    tale.rig.check_invariants().await;
    let status = restore::status(&tale.rig.app.store).await.unwrap().unwrap();
    assert_eq!(status.ahead.unsettled, 0);
    let lost = status.ahead.unknown + status.ahead.newer;
    let routed = tale.routed().await;
    let kept = |name: &str| routed.iter().any(|r| r == name);
    let dropped = before.keys().filter(|name| !kept(name)).count();
    assert!(usize::try_from(lost).unwrap() >= dropped, "seed {}: {dropped} are lost, {lost} were told of", tale.seed);
    restore::end(&tale.rig.app.store, &tale.rig.env, Some(lost), "operator").await.unwrap();
    assert!(!tale.book.follow(&tale.rig).await.unwrap(), "it is over");
    tale.rig.distribute_a_key().await;
    assert!(matches!(
        restore::end(&tale.rig.app.store, &tale.rig.env, None, "operator").await,
        Err(RestoreError::NotRecovering)
    ));
    let served: Vec<String> = tale.book.all(&ALL).keys().map(|name| (*name).to_owned()).collect();
    assert_eq!(served, routed, "seed {}: edges have exactly what is stored", tale.seed);
    // What was known comes to its end, and nothing else.
    for name in [OLD, FLIGHT, COMING] {
        let id = tale.claim_of(&tale.acme, name).await.unwrap();
        tale.rig.until_active(&id, 96 * HOUR).await;
    }
    tale.pass(HOUR).await;
    for name in [FLOWN, READY, DROPPED, LATE] {
        assert_eq!(tale.book.served(name), None, "seed {}: {name}", tale.seed);
    }
    let moved = tale.book.served(MOVED);
    assert!(moved.is_none_or(|served| served.tenant == tale.beta), "seed {}: the former has it again", tale.seed);
    tale.rig.check_invariants().await;
}

async fn open(url: &str) -> Store {
    Store::open(&OpenSettings { url: url.to_owned(), connections: 4 }).await.unwrap()
}

#[tokio::test]
async fn a_sqlite_copy_of_any_moment_comes_back_twice() {
    let seeds = std::env::var("NAMEPLATE_RESTORE_SEEDS").map_or(6, |n| n.parse().unwrap());
    for seed in 1..=seeds {
        let dir = tempfile::tempdir().unwrap();
        let (file, copy) = (dir.path().join("np.db"), dir.path().join("copy.db"));
        let mut tale = until_the_copy(seed, &format!("sqlite:{}", file.display())).await;
        assert!(tale.rig.app.store.copy_to(&copy).await.unwrap());
        after_the_copy(&mut tale).await;
        for time in 0..2 {
            tale.rig.app.store.close().await;
            let again = dir.path().join(format!("again-{time}.db"));
            std::fs::copy(&copy, &again).unwrap();
            put_back(&mut tale, open(&format!("sqlite:{}", again.display())).await).await;
        }
        tale.rig.app.store.close().await;
    }
}

#[tokio::test]
async fn a_postgresql_dump_of_any_moment_comes_back_twice() {
    let first = TestStore::blank(Kind::Postgres).await;
    let base = crate::support::services::postgres_url();
    let (server, _) = base.rsplit_once('/').unwrap();
    let dir = tempfile::tempdir().unwrap();
    let dump = dir.path().join("dump").to_str().unwrap().to_owned();
    let mut tale = until_the_copy(101, &first.url).await;
    assert!(!tale.rig.app.store.copy_to(Path::new("/nowhere")).await.unwrap(), "PostgreSQL copies itself");
    postgres("pg_dump", &["--format=custom", &format!("--file={dump}"), &first.url]);
    after_the_copy(&mut tale).await;
    for _ in 0..2 {
        tale.rig.app.store.close().await;
        let name = format!("restored_{}", Env::real().draw_hex(8));
        postgres("createdb", &[&format!("--maintenance-db={base}"), &name]);
        let again = format!("{server}/{name}");
        postgres("pg_restore", &["--exit-on-error", &format!("--dbname={again}"), &dump]);
        put_back(&mut tale, open(&again).await).await;
        tale.rig.app.store.close().await;
        postgres("dropdb", &["--force", &format!("--maintenance-db={base}"), &name]);
    }
    first.remove().await;
}
