//! Claims, holdings and removal: who may hold a name, and what is left when it is let go.

use std::sync::Arc;
use std::time::Duration;

use nameplate::app::{self, check::CheckError};
use nameplate::model::claim::Claim;
use nameplate::model::hostname::Hostname;
use nameplate::model::id::DomainId;
use nameplate::model::ledger::Limit;
use nameplate::store::sql;

use crate::support::rig::Rig;
use crate::support::stores::{Kind, TestStore};

const NAME: &str = "shop.acme.test";
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

#[tokio::test]
async fn claiming_again_answers_with_the_same_claim_and_value() {
    let rig = Rig::new(1).await;
    let a = rig.tenant("acme").await;
    let b = rig.tenant("beta").await;
    let first = rig.claim(&a, NAME).await;
    let value = rig.value(&first).await;
    assert_eq!(rig.claim(&a, NAME).await, first);
    assert_eq!(rig.value(&first).await, value);
    let other = rig.claim(&b, NAME).await;
    assert_ne!(other, first);
    assert_ne!(rig.value(&other).await, value, "every claim has a value of its own");
}

/// B80: a CNAME left behind is no proof.
#[tokio::test]
async fn b80_a_dangling_cname_never_proves_ownership() {
    let rig = Rig::new(2).await;
    let a = rig.tenant("acme").await;
    let id = rig.claim(&a, NAME).await;
    let target = rig.domain_text(&id, "target").await.unwrap();
    rig.zones.add(&format!("{NAME}. 60 IN CNAME {target}.")).unwrap();
    rig.pass(2 * HOUR).await;
    assert_eq!(rig.domain_text(&id, "claim").await.unwrap(), "awaiting_dns");
    assert_eq!(rig.ca.state().counters().orders_created, 0);
}

/// B82: two tenants claim and prove one name at once; in every round exactly one holds it.
#[tokio::test]
async fn b82_two_tenants_prove_one_name_at_once() {
    for seed in 0..40 {
        let rig = Rig::new(seed).await;
        let a = rig.tenant("acme").await;
        let b = rig.tenant("beta").await;
        let claims = [rig.claim(&a, NAME).await, rig.claim(&b, NAME).await];
        // Both values are there; the CNAME leads through a third name to neither tenant's host in turn.
        for id in &claims {
            let value = rig.value(id).await;
            rig.zones.add(&format!("_nameplate-challenge.{NAME}. 60 IN TXT \"{value}\"")).unwrap();
        }
        let winner = usize::try_from(rig.hand.below(2)).unwrap();
        let target = rig.domain_text(&claims[winner], "target").await.unwrap();
        rig.zones.add(&format!("{NAME}. 60 IN CNAME {target}.")).unwrap();
        rig.until_active(&claims[winner], HOUR).await;
        // The CNAME moves to the other's host: its own checks pass, but the name is held.
        rig.zones.remove(&format!("{NAME}. 60 IN CNAME {target}.")).unwrap();
        let other = &claims[1 - winner];
        let target = rig.domain_text(other, "target").await.unwrap();
        rig.zones.add(&format!("{NAME}. 60 IN CNAME {target}.")).unwrap();
        rig.pass(HOUR).await;
        rig.check_invariants().await;
        assert_eq!(rig.domain_text(other, "claim").await.unwrap(), "awaiting_dns");
        let told = rig.events(other).await.iter().filter(|kind| *kind == "held_elsewhere").count();
        assert_eq!(told, 1, "it is told once: {}", rig.story(other).await);
        let held = sql("SELECT count(*) AS n FROM holdings WHERE state = 'held'");
        assert_eq!(rig.count(held).await, 1);
    }
}

/// B57: many workers, every alarm doubled, the dispatcher rung twice at once: one order a domain, by the database.
async fn one_order_a_domain(rig: Rig) {
    const DUE: usize = 1_000;
    let rig = Arc::new(rig);
    let a = rig.tenant("acme").await;
    let mut ids = Vec::new();
    for n in 0..DUE {
        // Of so many registered domains that no limit of theirs holds any back.
        let name = format!("n{n}.acme.test");
        let id = rig.claim(&a, &name).await;
        rig.publish(&id, &name).await;
        ids.push(id);
    }
    let ids = Arc::new(ids);
    for _ in 0..80 {
        app::account::ensure_all(&rig.app).await.unwrap();
        let (first, second) = tokio::join!(app::dispatch::round(&rig.app), app::dispatch::round(&rig.app));
        first.unwrap();
        second.unwrap();
        let mut workers = tokio::task::JoinSet::new();
        for worker in 0..16 {
            let (app, ids) = (rig.new_worker(), Arc::clone(&ids));
            workers.spawn(async move {
                // Only what is due, as alarms have it; neighbours begin at the same one.
                let due = sql("SELECT id FROM domains WHERE due_at <= $1 ORDER BY id").bind(app.env.now());
                let due: Vec<DomainId> =
                    app.store.query(due).await.unwrap().iter().map(|row| row.parse("id").unwrap()).collect();
                let from = worker / 4 * due.len() / 4;
                for id in due.iter().cycle().skip(from).take(due.len()) {
                    assert!(ids.contains(id));
                    app::advance::advance(&app, id).await.unwrap();
                }
            });
        }
        while let Some(done) = workers.join_next().await {
            done.unwrap();
        }
        rig.edge_follows().await;
        rig.hand.advance(Duration::from_secs(1));
        if rig.count(sql("SELECT count(*) AS n FROM domains WHERE active_since IS NULL")).await == 0 {
            break;
        }
    }
    rig.check_invariants().await;
    let active = sql("SELECT count(*) AS n FROM domains WHERE active_since IS NOT NULL");
    assert_eq!(rig.count(active).await, i64::try_from(DUE).unwrap());
    let state = rig.ca.state();
    let made = state.counters();
    assert_eq!(made.orders_created, u64::try_from(DUE).unwrap());
    assert!(made.certificates_by_name.values().all(|n| *n == 1));
}

/// Room for all of them.
const WIDE: Limit = Limit { burst: 5_000, per_secs: 10_800 };

#[tokio::test]
async fn b57_sixteen_workers_make_one_order_a_domain() {
    one_order_a_domain(Rig::with_limit(5, "sqlite::memory:", WIDE).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b57_sixteen_workers_make_one_order_a_domain_on_postgres() {
    let test = TestStore::blank(Kind::Postgres).await;
    one_order_a_domain(Rig::with_limit(5, &test.url, WIDE).await).await;
    test.remove().await;
}

#[tokio::test]
async fn a_claim_removed_before_proof_is_withdrawn_and_starts_from_zero() {
    let rig = Rig::new(6).await;
    let a = rig.tenant("acme").await;
    let id = rig.claim(&a, NAME).await;
    let value = rig.value(&id).await;
    assert_eq!(app::remove::remove(&rig.app, &id, "tenant").await.unwrap(), Claim::Withdrawn);
    rig.publish(&id, NAME).await;
    rig.pass(HOUR).await;
    assert_eq!(rig.domain_text(&id, "claim").await.unwrap(), "withdrawn");
    assert!(app::remove::remove(&rig.app, &id, "tenant").await.is_err(), "it is gone already");
    let again = rig.claim(&a, NAME).await;
    assert_ne!(again, id);
    assert_ne!(rig.value(&again).await, value);
    rig.pass(HOUR).await;
    assert_eq!(rig.domain_text(&again, "claim").await.unwrap(), "awaiting_dns", "the old value proves nothing");
}

/// Invariant 6 and B90: after removal no route, no order, no challenge; after the grace no key.
#[tokio::test]
async fn b90_a_live_name_that_is_removed_leaves_edges_at_once_and_keys_after_the_grace() {
    let rig = Rig::new(8).await;
    let a = rig.tenant("acme").await;
    let id = rig.claim(&a, NAME).await;
    rig.publish(&id, NAME).await;
    rig.until_active(&id, HOUR).await;
    assert!(rig.serial_at_edge(NAME).is_some());
    assert_eq!(app::remove::remove(&rig.app, &id, "tenant").await.unwrap(), Claim::Releasing);
    rig.edge_follows().await;
    assert_eq!(rig.serial_at_edge(NAME), None, "the route is gone at once");
    rig.check_invariants().await;
    let keys = || sql("SELECT count(*) AS n FROM certificates WHERE sealed_key IS NOT NULL");
    assert_eq!(rig.count(keys()).await, 1, "the key stays for undo");
    let holding = sql("SELECT count(*) AS n FROM holdings WHERE state = 'quarantined'");
    assert_eq!(rig.count(holding).await, 1);
    rig.hand.advance(7 * DAY);
    rig.pass(Duration::from_secs(30)).await;
    assert_eq!(rig.domain_text(&id, "claim").await.unwrap(), "released");
    assert_eq!(rig.count(keys()).await, 0, "the key is destroyed");
    let orders = sql("SELECT count(*) AS n FROM orders WHERE sealed_key IS NOT NULL");
    assert_eq!(rig.count(orders).await, 0);
}

/// B90: removal fences a step in flight at every boundary; it commits nothing afterwards.
#[tokio::test]
async fn b90_removal_fences_a_step_in_flight() {
    for cut in 1..60 {
        let rig = Rig::new(9).await;
        let a = rig.tenant("acme").await;
        let id = rig.claim(&a, NAME).await;
        rig.publish(&id, NAME).await;
        rig.scissors.set(cut);
        let app = rig.new_worker();
        let mut sleeper = None;
        for _ in 0..40 {
            let mut step = Box::pin(rig.everything_once(&app));
            let stopped = tokio::select! {
                biased;
                () = &mut step => false,
                () = rig.scissors.reached() => true,
            };
            if stopped {
                sleeper = Some(step);
                break;
            }
            drop(step);
            rig.edge_follows().await;
            rig.hand.advance(Duration::from_secs(1));
        }
        let Some(sleeper) = sleeper else { break };
        let place = rig.scissors.crossed().last().copied().unwrap_or_default();
        if place.starts_with("before") && place.contains("commit") {
            continue;
        }
        let removed = app::remove::remove(&rig.app, &id, "tenant").await.unwrap();
        let (row, events) = (rig.row(&id).await, rig.events(&id).await);
        rig.scissors.resume();
        sleeper.await;
        assert_eq!(rig.row(&id).await, row, "a step cut at {place} wrote after removal");
        assert_eq!(rig.events(&id).await, events, "a step cut at {place} told of something after removal");
        rig.pass(Duration::from_secs(120)).await;
        assert_eq!(rig.domain_text(&id, "claim").await.unwrap(), removed.as_str(), "cut at {place}");
        assert_eq!(rig.serial_at_edge(NAME), None, "cut at {place}");
        let open = sql("SELECT count(*) AS n FROM orders WHERE state NOT IN ('issued', 'failed', 'lost')");
        assert_eq!(rig.count(open).await, 0, "cut at {place}");
        let challenges = sql("SELECT count(*) AS n FROM challenges WHERE removed_at IS NULL");
        assert_eq!(rig.count(challenges).await, 0, "cut at {place}");
    }
}

/// Way (b) out of quarantine: another tenant's fresh proof with the former's gone and the CNAME at the new tenant's own host.
#[tokio::test]
async fn a_quarantine_ends_by_anothers_proof_once_the_formers_record_is_gone() {
    let rig = Rig::new(10).await;
    let a = rig.tenant("acme").await;
    let former = rig.claim(&a, NAME).await;
    rig.publish(&former, NAME).await;
    rig.until_active(&former, HOUR).await;
    app::remove::remove(&rig.app, &former, "tenant").await.unwrap();
    let b = rig.tenant("beta").await;
    let next = rig.claim(&b, NAME).await;
    let value = rig.value(&next).await;
    rig.zones.add(&format!("_nameplate-challenge.{NAME}. 60 IN TXT \"{value}\"")).unwrap();
    let (old, new) = (rig.domain_text(&former, "target").await.unwrap(), rig.domain_text(&next, "target").await.unwrap());
    rig.zones.remove(&format!("{NAME}. 60 IN CNAME {old}.")).unwrap();
    rig.zones.add(&format!("{NAME}. 60 IN CNAME {new}.")).unwrap();
    rig.pass(HOUR).await;
    assert_eq!(rig.domain_text(&next, "claim").await.unwrap(), "awaiting_dns", "the former's record is still there");
    assert!(rig.events(&next).await.contains(&"quarantined".to_owned()), "{}", rig.story(&next).await);
    rig.unpublish_txt(&former, NAME).await;
    rig.until_active(&next, HOUR).await;
    rig.check_invariants().await;
    let term = sql("SELECT term AS n FROM holdings");
    assert_eq!(rig.count(term).await, 2, "a hand-over raises the term");
    rig.pass(Duration::from_secs(60)).await;
    assert_eq!(rig.domain_text(&former, "claim").await.unwrap(), "released", "nothing is left to come back to");
    let keys =
        sql("SELECT count(*) AS n FROM certificates WHERE sealed_key IS NOT NULL AND domain_id = $1").bind(former.as_str());
    assert_eq!(rig.count(keys).await, 0, "the former's key is destroyed with the hand-over");
}

/// The former tenant's own re-claim needs a new value, but not its old one gone.
#[tokio::test]
async fn the_former_tenant_comes_back_with_a_new_value() {
    let rig = Rig::new(11).await;
    let a = rig.tenant("acme").await;
    let former = rig.claim(&a, NAME).await;
    rig.publish(&former, NAME).await;
    rig.until_active(&former, HOUR).await;
    app::remove::remove(&rig.app, &former, "tenant").await.unwrap();
    rig.hand.advance(8 * DAY);
    rig.pass(Duration::from_secs(60)).await;
    assert_eq!(rig.domain_text(&former, "claim").await.unwrap(), "released");
    let again = rig.claim(&a, NAME).await;
    assert_ne!(again, former);
    rig.pass(HOUR).await;
    assert_eq!(rig.domain_text(&again, "claim").await.unwrap(), "awaiting_dns", "no old proof counts");
    let value = rig.value(&again).await;
    rig.zones.add(&format!("_nameplate-challenge.{NAME}. 60 IN TXT \"{value}\"")).unwrap();
    rig.until_active(&again, HOUR).await;
    rig.check_invariants().await;
}

/// Where no CNAME can show the new tenant's host, the former's record must be seen gone for 72 hours, counted from then.
#[tokio::test]
async fn an_apex_rests_72_hours_after_the_formers_record_is_gone() {
    let rig = Rig::new(18).await;
    let a = rig.tenant("acme").await;
    let former = rig.claim(&a, "acme.test").await;
    rig.zones.add("acme.test. 60 IN A 192.0.2.80").unwrap();
    let proof = async |id| format!("_nameplate-challenge.acme.test. 60 IN TXT \"{}\"", rig.value(id).await);
    rig.zones.add(&proof(&former).await).unwrap();
    rig.until_active(&former, HOUR).await;
    app::remove::remove(&rig.app, &former, "tenant").await.unwrap();
    let b = rig.tenant("beta").await;
    let next = rig.claim(&b, "acme.test").await;
    rig.zones.add(&proof(&next).await).unwrap();
    rig.pass(5 * DAY).await;
    assert_eq!(rig.domain_text(&next, "claim").await.unwrap(), "awaiting_dns", "the former's record is still there");
    rig.zones.remove(&proof(&former).await).unwrap();
    rig.pass(2 * DAY).await;
    assert_eq!(rig.domain_text(&next, "claim").await.unwrap(), "awaiting_dns", "the hours count from when it was gone");
    rig.until_active(&next, 3 * DAY).await;
    rig.check_invariants().await;
}

/// A tenant that changes its mind within the grace claims anew: a new value, no old key, the name back at once.
#[tokio::test]
async fn a_removed_name_can_be_claimed_again_at_once_by_the_same_tenant() {
    let rig = Rig::new(17).await;
    let a = rig.tenant("acme").await;
    let former = rig.claim(&a, NAME).await;
    rig.publish(&former, NAME).await;
    rig.until_active(&former, HOUR).await;
    app::remove::remove(&rig.app, &former, "tenant").await.unwrap();
    let again = rig.claim(&a, NAME).await;
    assert_ne!(again, former);
    let value = rig.value(&again).await;
    rig.zones.add(&format!("_nameplate-challenge.{NAME}. 60 IN TXT \"{value}\"")).unwrap();
    rig.until_active(&again, HOUR).await;
    rig.pass(Duration::from_secs(60)).await;
    rig.check_invariants().await;
    assert_eq!(rig.domain_text(&former, "claim").await.unwrap(), "released");
    let keys = sql("SELECT count(*) AS n FROM certificates WHERE sealed_key IS NOT NULL");
    assert_eq!(rig.count(keys).await, 1, "only the new key is left");
}

#[tokio::test]
async fn an_attempt_expires_and_a_new_claim_opens_a_new_one() {
    let rig = Rig::new(12).await;
    let a = rig.tenant("acme").await;
    let id = rig.claim(&a, NAME).await;
    let value = rig.value(&id).await;
    rig.hand.advance(31 * DAY);
    rig.pass(Duration::from_secs(30)).await;
    assert_eq!(rig.domain_text(&id, "claim").await.unwrap(), "expired");
    assert_eq!(rig.claim(&a, NAME).await, id, "the claim is re-opened");
    assert_ne!(rig.value(&id).await, value);
    rig.publish(&id, NAME).await;
    rig.until_active(&id, HOUR).await;
    rig.check_invariants().await;
}

/// A queued name whose proof is gone lets go of the name in the same transaction.
#[tokio::test]
async fn a_queued_name_whose_proof_is_gone_awaits_dns_again() {
    let rig = Rig::new(13).await;
    let a = rig.tenant("acme").await;
    let id = rig.claim(&a, NAME).await;
    rig.publish(&id, NAME).await;
    let app = rig.new_worker();
    app::account::ensure_all(&app).await.unwrap();
    app::advance::advance(&app, &id).await.unwrap();
    assert_eq!(rig.domain_text(&id, "claim").await.unwrap(), "queued");
    rig.unpublish_txt(&id, NAME).await;
    rig.hand.advance(Duration::from_secs(20));
    app::advance::advance(&app, &id).await.unwrap();
    assert_eq!(rig.domain_text(&id, "claim").await.unwrap(), "awaiting_dns", "{}", rig.story(&id).await);
    rig.check_invariants().await;
    let free = sql("SELECT count(*) AS n FROM holdings WHERE state = 'free'");
    assert_eq!(rig.count(free).await, 1);
    let value = rig.value(&id).await;
    rig.zones.add(&format!("_nameplate-challenge.{NAME}. 60 IN TXT \"{value}\"")).unwrap();
    rig.until_active(&id, HOUR).await;
}

/// Routing or CAA alone failing keeps the name queued, spends no order, and goes on by itself when it heals.
#[tokio::test]
async fn a_queued_name_that_fails_a_check_spends_no_order() {
    let rig = Rig::new(14).await;
    let a = rig.tenant("acme").await;
    let id = rig.claim(&a, NAME).await;
    rig.publish(&id, NAME).await;
    let app = rig.new_worker();
    app::account::ensure_all(&app).await.unwrap();
    app::advance::advance(&app, &id).await.unwrap();
    // Older than what an order may be placed on.
    rig.hand.advance(Duration::from_secs(121));
    rig.zones.add("acme.test. 60 IN CAA 0 issue \"other.example\"").unwrap();
    rig.pass(HOUR).await;
    assert_eq!(rig.domain_text(&id, "claim").await.unwrap(), "queued", "{}", rig.story(&id).await);
    assert_eq!(rig.ca.state().counters().orders_created, 0, "no order is spent");
    let spends = sql("SELECT count(*) AS n FROM spends");
    assert_eq!(rig.count(spends).await, 0, "the grant went back");
    rig.zones.remove("acme.test. 60 IN CAA 0 issue \"other.example\"").unwrap();
    rig.until_active(&id, HOUR).await;
    rig.check_invariants().await;
}

#[tokio::test]
async fn check_now_looks_at_once_and_not_too_often() {
    let rig = Rig::new(15).await;
    let a = rig.tenant("acme").await;
    let id = rig.claim(&a, NAME).await;
    rig.pass(3 * DAY).await;
    rig.publish(&id, NAME).await;
    app::check::check_now(&rig.app, &id, "tenant").await.unwrap();
    let asked = rig.env.now();
    assert!(matches!(app::check::check_now(&rig.app, &id, "tenant").await, Err(CheckError::TooSoon(_))));
    rig.until_active(&id, HOUR).await;
    assert!(rig.env.now().since(asked) < Duration::from_secs(30), "it took {:?}", rig.env.now().since(asked));
    assert!(rig.events(&id).await.contains(&"check_asked".to_owned()));
}

/// Invariant 2 at its root: the database itself refuses a second open claim and a second holder.
#[tokio::test]
async fn many_claims_of_one_tenant_at_once_are_one_claim() {
    let rig = Rig::new(16).await;
    let a = rig.tenant("acme").await;
    let mut all = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let (app, a) = (rig.app.clone(), a.clone());
        all.spawn(async move { app::claim::claim(&app, &a, &Hostname::trusted(NAME), "tenant").await.unwrap() });
    }
    let (mut ids, mut new) = (Vec::new(), 0);
    while let Some(claimed) = all.join_next().await {
        let claimed = claimed.unwrap();
        ids.push(claimed.id);
        new += usize::from(claimed.new);
    }
    ids.sort();
    ids.dedup();
    assert_eq!((ids.len(), new), (1, 1));
}
