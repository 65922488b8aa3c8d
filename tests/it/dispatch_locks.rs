//! Rounds of the dispatcher beside whoever else writes to its queue, on a database where both are at work at once.

use std::time::Duration;

use nameplate::app::account::ensure_all;
use nameplate::app::dispatch::round;
use nameplate::mint;
use nameplate::model::bulk::Hold;
use nameplate::model::id::{ImportId, IssuerId, OrderId};
use nameplate::model::ledger::Limit;
use nameplate::model::moment::Moment;
use nameplate::store::{Store, bulk_orders, issuers, sql};

use crate::support::rig::Rig;
use crate::support::seed;
use crate::support::stores::{Kind, TestStore};

/// Orders of queued names of an import, one by one from `first` on.
async fn queue_up(rig: &Rig, issuer: &IssuerId, import: &ImportId, names: std::ops::Range<u16>) -> Vec<OrderId> {
    let store = &rig.app.store;
    let mut orders = Vec::new();
    for n in names {
        let (domain, order) = (seed::domain_id(n), OrderId::mint(rig.env.now(), seed::bytes(n)));
        let name = format!("www.n{n}.example");
        store.execute(seed::domain(&domain, &seed::tenant_id(0), &name, Moment::NEVER)).await.unwrap();
        store.execute(seed::order(&order, &domain, issuer, "first")).await.unwrap();
        let claim = sql("UPDATE domains SET claim = 'queued', lane = 'bulk', import_id = $2 WHERE id = $1");
        store.execute(claim.bind(domain.as_str()).bind(import.as_str())).await.unwrap();
        store.execute(sql("UPDATE orders SET lane = 'bulk' WHERE id = $1").bind(order.as_str())).await.unwrap();
        orders.push(order);
    }
    orders
}

async fn world(seed: u64) -> (TestStore, Rig, IssuerId, ImportId) {
    let test = TestStore::blank(Kind::Postgres).await;
    let rig = Rig::with_limit(seed, &test.url, Limit { burst: 1_000, per_secs: 1_000 }).await;
    ensure_all(&rig.app).await.unwrap();
    rig.app.store.execute(seed::tenant(&seed::tenant_id(0), "acme")).await.unwrap();
    let issuer = issuers::list(&rig.app.store).await.unwrap().remove(0).id;
    let import = mint!(rig.env, ImportId);
    (test, rig, issuer, import)
}

async fn in_state(store: &Store, state: &str) -> i64 {
    let stmt = sql("SELECT count(*) AS n FROM orders WHERE state = $1 AND not_before < $2").bind(state).bind(Moment::NEVER);
    store.query(stmt).await.unwrap()[0].int("n").unwrap()
}

/// Returns once somebody waits for a lock that somebody else has.
async fn somebody_waits(rig: &Rig) {
    let waits = "SELECT count(*) AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let one = async { while rig.count(sql(waits)).await == 0 {} };
    tokio::time::timeout(Duration::from_secs(20), one).await.expect("somebody waits for a lock");
}

/// Who becomes eligible between a round's first look and its turn at the issuer's row is told to the next, not forgotten.
#[tokio::test]
async fn a_round_that_waited_for_its_turn_names_who_became_eligible_meanwhile() {
    let (test, rig, issuer, import) = world(81).await;
    let store = &rig.app.store;
    let order = queue_up(&rig, &issuer, &import, 0..1).await.remove(0);
    let at = rig.env.now() + Duration::from_secs(2);
    let aside = sql("UPDATE orders SET held_by = 'certificates_per_domain', not_before = $2 WHERE id = $1");
    store.execute(aside.bind(order.as_str()).bind(at)).await.unwrap();

    let mut other = store.begin().await.unwrap();
    issuers::lock(&mut other, &issuer).await.unwrap();
    let app = rig.app.clone();
    let waiting = tokio::spawn(async move { round(&app).await });
    somebody_waits(&rig).await;
    rig.hand.advance(Duration::from_secs(5));
    other.commit().await.unwrap();

    assert_eq!(waiting.await.unwrap().unwrap(), Some(at));
    round(&rig.app).await.unwrap();
    assert_eq!(in_state(store, "granted").await, 1);
    drop(rig);
    test.remove().await;
}

/// Both lock many orders, each in an order of its own: neither may be the victim of the other.
#[tokio::test]
async fn an_import_is_held_while_its_orders_are_granted() {
    const NAMES: u16 = 120;
    let (test, rig, issuer, import) = world(82).await;
    let store = &rig.app.store;
    let mut granted = 0;
    // Not before a round is over: the row of its issuer is locked, and no order yet.
    let mut other = store.begin().await.unwrap();
    issuers::lock(&mut other, &issuer).await.unwrap();
    let hold = async {
        let mut tx = store.begin().await.unwrap();
        bulk_orders::hold(&mut tx, &import, Hold::ByTenant, rig.env.now()).await.unwrap();
    };
    let round_over = async {
        somebody_waits(&rig).await;
        other.commit().await.unwrap();
    };
    tokio::join!(hold, round_over);
    for turn in 0..3 {
        queue_up(&rig, &issuer, &import, turn * NAMES..(turn + 1) * NAMES).await;
        let hold = async {
            let mut tx = store.begin().await.unwrap();
            let held = bulk_orders::hold(&mut tx, &import, Hold::ByTenant, rig.env.now()).await;
            tx.commit().await.unwrap();
            held
        };
        let (round, held) = tokio::join!(round(&rig.app), hold);
        round.unwrap();
        let held = i64::try_from(held.unwrap()).unwrap();
        assert_eq!(in_state(store, "waiting").await, 0, "one of them waits that is neither granted nor held");
        let now = in_state(store, "granted").await;
        assert_eq!(held + now - granted, i64::from(NAMES));
        granted = now;
    }
    drop(rig);
    test.remove().await;
}
