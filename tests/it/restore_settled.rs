//! What edges remember after a restore, taken in one name at a time.

use std::time::Duration;

use nameplate::app::restore::{self, RestoreError};
use nameplate::app::{self, tenants};
use nameplate::mint;
use nameplate::model::feed::{HostAction, HostEntry};
use nameplate::model::feed_apply::Remembered;
use nameplate::model::hostname::Hostname;
use nameplate::model::id::{CertificateId, DomainId, EdgeId, TenantId};
use nameplate::store::{self, sql};

use crate::support::rig::Rig;
use crate::support::stores::{Kind, TestStore};

const HOUR: Duration = Duration::from_secs(3600);
const NAME: &str = "shop.acme.test";

/// What an edge was told of a name.
fn told(rig: &Rig, name: &str, tenant: &TenantId, term: i64, certificate: Option<CertificateId>) -> Remembered {
    let now = rig.env.now();
    let action = if certificate.is_some() { HostAction::Serve } else { HostAction::Gone };
    let hostname = Hostname::trusted(name);
    let (slug, version) = ("whoever".to_owned(), now.micros());
    let not_after = certificate.as_ref().map(|_| now + HOUR * 24 * 80);
    let host = HostEntry {
        hostname,
        tenant_id: tenant.clone(),
        slug,
        term,
        action,
        certificate_id: certificate,
        redirect_to: None,
        version,
    };
    Remembered { host, serial: None, not_after }
}

async fn recollect(rig: &Rig, remembered: &Remembered) -> u64 {
    rig.app.store.execute(store::restore::recollect(&rig.edge, remembered, rig.env.now())).await.unwrap()
}

async fn began(rig: &Rig) {
    rig.hand.advance(Duration::from_secs(1));
    restore::begin(&rig.app.store, &rig.env).await.unwrap();
    rig.distribute_a_key().await;
}

async fn live(rig: &Rig, tenant: &TenantId, name: &str) -> DomainId {
    let id = rig.claim(tenant, name).await;
    rig.publish(&id, name).await;
    rig.until_active(&id, HOUR).await;
    id
}

async fn outcome(rig: &Rig, name: &str) -> Option<String> {
    let stmt = sql("SELECT outcome FROM recollections WHERE hostname = $1").bind(name);
    rig.app.store.query(stmt).await.unwrap()[0].opt_text("outcome").unwrap()
}

async fn state(rig: &Rig, id: &DomainId) -> String {
    rig.domain_text(id, "claim").await.unwrap()
}

/// The edges took the restored feed, and so have told what they remember.
async fn have_told(rig: &Rig) {
    rig.app.store.execute(sql("UPDATE edges SET cursor_epoch = (SELECT epoch FROM feed)")).await.unwrap();
}

async fn settle(rig: &Rig) {
    have_told(rig).await;
    while restore::settle(&rig.app).await.unwrap() > 0 {}
}

/// Edges are told, so far, of so many changes of a name.
async fn told_edges(rig: &Rig, name: &str) -> i64 {
    rig.count(sql("SELECT count(*) AS n FROM outbox WHERE kind = 'host' AND subject = $1").bind(name)).await
}

#[tokio::test]
async fn a_name_that_was_let_go_of_is_again_and_no_crash_loses_that() {
    let mut cuts = 0;
    for cut in 1..6 {
        let rig = Rig::new(501).await;
        let acme = rig.tenant("acme").await;
        let id = live(&rig, &acme, NAME).await;
        began(&rig).await;
        assert_eq!(recollect(&rig, &told(&rig, NAME, &acme, 1, None)).await, 1);
        rig.hand.advance(Duration::from_secs(1));
        have_told(&rig).await;
        rig.scissors.set(cut);
        let mut round = Box::pin(restore::settle(&rig.app));
        tokio::select! { biased; done = &mut round => assert_eq!(done.unwrap(), 1), () = rig.scissors.reached() => cuts += 1 }
        drop(round);
        rig.scissors.set(0);
        settle(&rig).await;
        assert_eq!((state(&rig, &id).await.as_str(), outcome(&rig, NAME).await.as_deref()), ("releasing", Some("let_go")));
        rig.edge_follows().await;
        assert_eq!(rig.serial_at_edge(NAME), None);
        assert_eq!(rig.events(&id).await.iter().filter(|kind| *kind == "removed").count(), 1);
        assert_eq!(rig.count(sql("SELECT count(*) AS n FROM holdings WHERE state = 'quarantined'")).await, 1);
        assert_eq!(restore::settle(&rig.app).await.unwrap(), 0, "once");
        let ahead = restore::status(&rig.app.store).await.unwrap().unwrap().ahead;
        assert_eq!((ahead.let_go, ahead.unknown, ahead.newer, ahead.unsettled), (1, 0, 0, 0));
        rig.check_invariants().await;
    }
    assert!(cuts > 0, "nothing was cut");
}

#[tokio::test]
async fn what_edges_serve_stays_theirs_and_is_counted() {
    let rig = Rig::new(502).await;
    let (acme, beta) = (rig.tenant("acme").await, rig.tenant("beta").await);
    let id = live(&rig, &acme, NAME).await;
    let same = rig.app.store.query(sql("SELECT certificate_id FROM domains WHERE id = $1").bind(id.as_str())).await.unwrap();
    let same: CertificateId = same[0].parse("certificate_id").unwrap();
    let waits = rig.claim(&acme, "new.acme.test").await;
    rig.publish(&waits, "new.acme.test").await;
    began(&rig).await;
    let fresh = || mint!(rig.env, CertificateId);
    for remembered in [
        told(&rig, NAME, &acme, 1, Some(same)),
        told(&rig, "new.acme.test", &acme, 1, Some(fresh())),
        told(&rig, "late.acme.test", &beta, 1, Some(fresh())),
    ] {
        assert_eq!(recollect(&rig, &remembered).await, 1);
        assert_eq!(recollect(&rig, &remembered).await, 0, "told twice is told once");
    }
    // Before it is settled nothing is ordered for them either, and it cannot be ended.
    let placed = rig.ca.state().counters().orders_created;
    rig.pass(HOUR).await;
    let now_placed = rig.ca.state().counters().orders_created;
    assert_eq!(now_placed, placed, "{}", rig.story(&waits).await);
    let early = restore::end(&rig.app.store, &rig.env, None, "operator").await;
    assert!(matches!(early, Err(RestoreError::Unsettled(3))), "{early:?}");
    settle(&rig).await;
    for (name, what) in [(NAME, "known"), ("new.acme.test", "newer"), ("late.acme.test", "unknown")] {
        assert_eq!(outcome(&rig, name).await.as_deref(), Some(what), "{name}");
    }
    rig.pass(6 * HOUR).await;
    let now_placed = rig.ca.state().counters().orders_created;
    assert_eq!(now_placed, placed, "{}", rig.story(&waits).await);
    assert_eq!(state(&rig, &id).await, "live");
    let status = restore::status(&rig.app.store).await.unwrap().unwrap();
    assert_eq!((status.ahead.unknown, status.ahead.newer, status.names.len()), (1, 1, 2));
    restore::end(&rig.app.store, &rig.env, Some(2), "operator").await.unwrap();
    rig.distribute_a_key().await;
    rig.until_active(&waits, 6 * HOUR).await;
    rig.check_invariants().await;
}

/// The name went to another tenant after the copy was made. Who held it then is not served again, and edges hear nothing that would
/// take it off whom they serve it for.
#[tokio::test]
async fn a_name_that_was_handed_over_does_not_come_back_to_whom_it_left() {
    for (serves, queued) in [(true, false), (false, false), (true, true)] {
        let rig = Rig::new(503).await;
        let (acme, beta) = (rig.tenant("acme").await, rig.tenant("beta").await);
        let id = if queued {
            let id = rig.claim(&acme, NAME).await;
            rig.publish(&id, NAME).await;
            while state(&rig, &id).await != "queued" {
                rig.turn().await;
            }
            id
        } else {
            live(&rig, &acme, NAME).await
        };
        began(&rig).await;
        let before = told_edges(&rig, NAME).await;
        let certificate = serves.then(|| mint!(rig.env, CertificateId));
        assert_eq!(recollect(&rig, &told(&rig, NAME, &beta, 2, certificate)).await, 1);
        settle(&rig).await;
        assert_eq!(outcome(&rig, NAME).await.as_deref(), Some(if serves { "unknown" } else { "let_go" }));
        assert_eq!(state(&rig, &id).await, "releasing");
        let routes = sql("SELECT count(*) AS n FROM routes WHERE action = 'serve' AND domain_id IS NOT NULL");
        assert_eq!(rig.count(routes).await, 0);
        assert_eq!(told_edges(&rig, NAME).await, before, "edges are told nothing");
        let version = rig.app.store.query(sql("SELECT version FROM routes")).await.unwrap();
        let told = sql("SELECT version FROM recollections");
        let told = rig.app.store.query(told).await.unwrap()[0].int("version").unwrap();
        assert!(version.iter().all(|row| row.int("version").unwrap() <= told), "what is stored is no news to them");
        rig.check_invariants().await;
        // Its own record is there still: then it is its own to say so.
        assert!(app::undo::undo(&rig.app, &id, &app::expect::Expect::ANY, "tenant").await.is_ok());
        rig.check_invariants().await;
    }
}

/// Only what stood before the copy can have been let go of after it.
#[tokio::test]
async fn what_was_made_after_the_restore_is_not_taken_for_what_was_before() {
    let rig = Rig::new(504).await;
    let (acme, beta) = (rig.tenant("acme").await, rig.tenant("beta").await);
    began(&rig).await;
    rig.hand.advance(Duration::from_secs(1));
    let anew = rig.claim(&acme, NAME).await;
    let proven = live(&rig, &acme, "eu.acme.test").await;
    recollect(&rig, &told(&rig, NAME, &acme, 1, None)).await;
    // An edge that comes late and tells of a holding before.
    let mut late = told(&rig, "eu.acme.test", &beta, 9, None);
    late.host.version = rig.env.now().micros() + 1;
    recollect(&rig, &late).await;
    settle(&rig).await;
    assert_eq!((state(&rig, &anew).await.as_str(), state(&rig, &proven).await.as_str()), ("awaiting_dns", "live"));
    // And what is older than what is stored is no news.
    let mut older = told(&rig, "eu.acme.test", &acme, 1, None);
    older.host.version = 5;
    assert_eq!(recollect(&rig, &older).await, 0);
    rig.check_invariants().await;
}

#[tokio::test]
async fn a_tenant_that_left_after_the_copy_is_told_of() {
    let rig = Rig::new(505).await;
    let host = |slug: &nameplate::model::slug::Slug| Some(Hostname::trusted(&format!("{slug}.app.example")));
    let new = tenants::NewTenant { slug: "acme", name: None };
    let acme = tenants::add(&rig.app.store, &rig.env, new, host, "operator").await.unwrap().id;
    began(&rig).await;
    assert_eq!(recollect(&rig, &told(&rig, "acme.app.example", &acme, 1, None)).await, 1);
    settle(&rig).await;
    assert_eq!(outcome(&rig, "acme.app.example").await.as_deref(), Some("left"));
    let status = restore::status(&rig.app.store).await.unwrap().unwrap();
    assert_eq!((status.ahead.left, status.left), (1, vec!["acme.app.example".to_owned()]));
}

/// A release whose end falls into the recovery: it may have been undone after the copy was made, so no key is destroyed on edges that
/// may serve with it.
#[tokio::test]
async fn no_release_ends_while_the_system_recovers() {
    let rig = Rig::new(506).await;
    let acme = rig.tenant("acme").await;
    let id = live(&rig, &acme, NAME).await;
    app::remove::remove(&rig.app, &id, "tenant").await.unwrap();
    rig.pass_quickly(6 * 24 * HOUR).await;
    began(&rig).await;
    rig.pass(48 * HOUR).await;
    let keys = || sql("SELECT count(*) AS n FROM certificates WHERE sealed_key IS NOT NULL");
    assert_eq!((state(&rig, &id).await.as_str(), rig.count(keys()).await), ("releasing", 1));
    restore::end(&rig.app.store, &rig.env, Some(0), "operator").await.unwrap();
    rig.pass(2 * HOUR).await;
    assert_eq!((state(&rig, &id).await.as_str(), rig.count(keys()).await), ("released", 0));
    rig.check_invariants().await;
}

/// The certificate was nearly there when the copy was made; since then the name was let go of, with its records left where they were.
/// Whoever goes on before edges told that would serve it again.
#[tokio::test]
async fn nothing_goes_on_at_the_ca_before_edges_told_what_they_remember() {
    let rig = Rig::new(507).await;
    let acme = rig.tenant("acme").await;
    let (gone, goes) = (rig.claim(&acme, NAME).await, rig.claim(&acme, "eu.acme.test").await);
    rig.publish(&gone, NAME).await;
    rig.publish(&goes, "eu.acme.test").await;
    let at_ca = sql("SELECT count(*) AS n FROM orders WHERE state IN ('authorizing', 'ready', 'finalizing')");
    let mut left = 400;
    while rig.count(at_ca.clone()).await < 2 {
        let app = rig.new_worker();
        rig.everything_once(&app).await;
        rig.edge_follows().await;
        rig.hand.advance(Duration::from_millis(300));
        left -= 1;
        assert!(left > 0, "{} {}", rig.story(&gone).await, rig.story(&goes).await);
    }
    began(&rig).await;
    let routes = sql("SELECT count(*) AS n FROM routes WHERE action = 'serve' AND domain_id IS NOT NULL");
    let think = async |minutes: u64, told: bool| {
        for _ in 0..minutes * 4 {
            let app = rig.new_worker();
            // Edges are heard of, as they are before they have taken the new epoch.
            rig.app.store.execute(sql("UPDATE edges SET heartbeat_at = $1").bind(rig.env.now())).await.unwrap();
            rig.everything_once(&app).await;
            if told {
                rig.edge_follows().await;
            }
            rig.hand.advance(Duration::from_secs(15));
        }
        rig.count(routes.clone()).await
    };
    assert_eq!(think(10, false).await, 0, "no edge has told anything");
    assert_eq!(recollect(&rig, &told(&rig, NAME, &acme, 1, None)).await, 1);
    rig.edge_follows().await;
    assert_eq!(
        think(10, true).await,
        1,
        "of the other name nothing is remembered, so it goes on: {}",
        rig.story(&goes).await
    );
    assert_eq!(state(&rig, &gone).await, "queued");
    settle(&rig).await;
    rig.pass(HOUR).await;
    assert_eq!((state(&rig, &gone).await.as_str(), state(&rig, &goes).await.as_str()), ("releasing", "live"));
    assert_eq!(rig.count(routes).await, 1);
    rig.check_invariants().await;
}

/// A change that says nothing of whose a name is must not be a newer word on that than what edges know.
#[tokio::test]
async fn a_redirect_that_is_changed_while_the_system_recovers_brings_nothing_back() {
    let rig = Rig::new(508).await;
    let acme = rig.tenant("acme").await;
    let (www, bare) = (live(&rig, &acme, "www.shop.acme.test").await, live(&rig, &acme, NAME).await);
    let mut tx = rig.app.store.begin().await.unwrap();
    assert!(store::pairs::link(&mut tx, &acme, &www, &bare).await.unwrap());
    tx.commit().await.unwrap();
    began(&rig).await;
    rig.hand.advance(Duration::from_secs(1));
    let told_later = rig.env.now().micros();
    rig.hand.advance(Duration::from_secs(1));
    let version =
        async || rig.count(sql("SELECT version AS n FROM routes WHERE hostname = $1").bind("www.shop.acme.test")).await;
    let before = version().await;
    let mut tx = rig.app.store.begin().await.unwrap();
    store::pairs::redirect(&mut tx, &www, true, "out_1", rig.env.now()).await.unwrap();
    tx.commit().await.unwrap();
    let redirected = version().await;
    assert!(before < redirected && redirected < told_later, "{before} {redirected} {told_later}");
    app::remove::remove(&rig.app, &bare, "tenant").await.unwrap();
    let unlinked = version().await;
    assert!(redirected < unlinked && unlinked < told_later, "{redirected} {unlinked} {told_later}");
    rig.check_invariants().await;
}

/// What the database takes for a claim that waits may be served by edges. Its removal reaches them; a stranger's does not.
#[tokio::test]
async fn a_claim_that_only_edges_know_to_be_live_is_removed_there_too() {
    for settled_first in [false, true] {
        let rig = Rig::new(509).await;
        let (acme, beta) = (rig.tenant("acme").await, rig.tenant("beta").await);
        let (own, others) = (rig.claim(&acme, NAME).await, rig.claim(&beta, NAME).await);
        began(&rig).await;
        let served = told(&rig, NAME, &acme, 1, Some(mint!(rig.env, CertificateId)));
        assert_eq!(recollect(&rig, &served).await, 1);
        rig.hand.advance(Duration::from_secs(1));
        if settled_first {
            settle(&rig).await;
        }
        app::remove::remove(&rig.app, &others, "tenant").await.unwrap();
        assert_eq!(told_edges(&rig, NAME).await, 0, "edges hear nothing of a stranger's claim");
        app::remove::remove(&rig.app, &own, "tenant").await.unwrap();
        assert_eq!((state(&rig, &own).await.as_str(), told_edges(&rig, NAME).await), ("withdrawn", 1));
        let route = sql("SELECT action, version FROM routes WHERE hostname = $1").bind(NAME);
        let route = &rig.app.store.query(route).await.unwrap()[0];
        assert_eq!(route.text("action").unwrap(), "gone");
        assert!(route.int("version").unwrap() > served.host.version, "it is news to them");
        settle(&rig).await;
        rig.check_invariants().await;
    }
}

/// A name was removed and brought back after the copy was made. An edge that lags heard of the removal alone: whoever heard last is waited
/// for, and the name stays served.
#[tokio::test]
async fn an_edge_that_lags_does_not_take_away_what_was_brought_back() {
    for (seed, kind) in [(530, Kind::SqliteMemory), (531, Kind::Postgres)] {
        let test = TestStore::blank(kind).await;
        let rig = Rig::on(seed, &test.url).await;
        let acme = rig.tenant("acme").await;
        let id = live(&rig, &acme, NAME).await;
        let same =
            rig.app.store.query(sql("SELECT certificate_id FROM domains WHERE id = $1").bind(id.as_str())).await.unwrap();
        let same: CertificateId = same[0].parse("certificate_id").unwrap();
        let late = EdgeId::mint(rig.env.now(), [2; 10]);
        let stmt = sql(
            "INSERT INTO edges (id, name, public_key, credential, status, cursor_epoch, cursor_seq, heartbeat_at, enrolled_at) \
               VALUES ($1, 'edge-2', $2, $2, 'active', 7, 0, $3, $3)",
        );
        rig.app.store.execute(stmt.bind(late.as_str()).bind(vec![2]).bind(rig.env.now())).await.unwrap();
        rig.hand.advance(Duration::from_secs(1));
        let removed = told(&rig, NAME, &acme, 1, None);
        rig.hand.advance(Duration::from_secs(1));
        let brought_back = told(&rig, NAME, &acme, 1, Some(same));
        began(&rig).await;
        // The late one comes first.
        let told_by = |edge: &EdgeId, what: &Remembered| store::restore::recollect(edge, what, rig.env.now());
        assert_eq!(rig.app.store.execute(told_by(&late, &removed)).await.unwrap(), 1);
        rig.app.store.execute(sql("UPDATE edges SET heartbeat_at = $1").bind(rig.env.now())).await.unwrap();
        let took = sql("UPDATE edges SET cursor_epoch = (SELECT epoch FROM feed) WHERE id = $1").bind(late.as_str());
        rig.app.store.execute(took).await.unwrap();
        assert_eq!(restore::settle(&rig.app).await.unwrap(), 0, "the other one has not told");
        rig.hand.advance(Duration::from_secs(1));
        let early = restore::end(&rig.app.store, &rig.env, None, "operator").await;
        assert!(matches!(early, Err(RestoreError::Unsettled(1))), "{early:?}");
        assert_eq!(rig.app.store.execute(told_by(&rig.edge, &brought_back)).await.unwrap(), 1);
        settle(&rig).await;
        assert_eq!((state(&rig, &id).await.as_str(), outcome(&rig, NAME).await.as_deref()), ("live", Some("known")));
        test.remove().await;
    }
}
