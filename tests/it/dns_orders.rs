//! What DNS and the edges must say before the CA is called, from the field's cases.

use std::time::Duration;

use nameplate::app::show;
use nameplate::model::evidence::{Check, Tie};
use nameplate::model::id::{DomainId, EdgeId};
use nameplate::model::ledger::Limit;
use nameplate::model::records::ApexRoute;
use nameplate::store::sql;

use crate::support::dns_ask::{VALUE, code, finding, ownership, routing, world};
use crate::support::rig::Rig;

const HOUR: Duration = Duration::from_secs(3600);

async fn caa_code(rig: &Rig, id: &DomainId) -> String {
    let apex = ApexRoute { target: None, addresses: vec![] };
    let view = show::domain(&rig.app.store, &apex, id, rig.env.now()).await.unwrap().unwrap();
    view.checks.into_iter().find(|c| c.check == Check::Caa).unwrap().code
}

#[tokio::test]
async fn b15_a_name_behind_another_proxy_is_a_state_of_its_own() {
    let world = world(&[
        "shop.example.com. 300 IN A 198.51.100.80",
        &format!("_nameplate-challenge.shop.example.com. 300 IN TXT \"{VALUE}\""),
    ]);
    let mut ask = routing("shop.example.com");
    ask.platform.cdn_prefixes = vec!["198.51.100.80/29".to_owned()];
    let seen = finding(&world, &ask).await;
    assert_eq!((seen.reason.code(), seen.reason.tie()), ("proxied_by_cdn", Tie::Silent));
    assert!(seen.advice.contains("198.51.100.80") && seen.advice.contains("switch the proxy off"), "{}", seen.advice);
    assert_eq!(code(&world, &ownership("shop.example.com")).await, "txt_ok");
}

#[tokio::test]
async fn b28_permission_is_read_again_right_before_each_order() {
    // One order in eight hours: the others wait, long after they were looked at.
    let rig = Rig::with_limit(28, "sqlite::memory:", Limit { burst: 1, per_secs: 8 * 3600 }).await;
    let tenant = rig.tenant("acme").await;
    let first = rig.claim(&tenant, "first.acme.test").await;
    rig.publish(&first, "first.acme.test").await;
    rig.until_active(&first, HOUR).await;
    let mut ids = Vec::new();
    for n in ["one", "two", "three"] {
        let name = format!("shop.{n}.acme.test");
        let id = rig.claim(&tenant, &name).await;
        rig.publish(&id, &name).await;
        ids.push(id);
    }
    rig.pass(HOUR).await;
    for id in &ids {
        assert_eq!(rig.domain_text(id, "claim").await.unwrap(), "queued");
        assert_eq!(caa_code(&rig, id).await, "caa_absent");
    }
    rig.zones.add("two.acme.test. 60 IN CAA 0 issue \";\"").unwrap();
    rig.pass(40 * HOUR).await;
    let orders = rig.ca.state().counters().orders_by_name.clone();
    assert_eq!(orders.get("shop.two.acme.test"), None, "{orders:?}");
    assert_eq!([orders.get("shop.one.acme.test"), orders.get("shop.three.acme.test")], [Some(&1), Some(&1)], "{orders:?}");
    assert_eq!(caa_code(&rig, &ids[1]).await, "caa_forbids_all");
    // Only the second was held, and only as long as it had to be.
    rig.zones.remove("two.acme.test. 60 IN CAA 0 issue \";\"").unwrap();
    rig.until_active(&ids[1], 24 * HOUR).await;
}

/// Adds an edge whose cursor is of this epoch; the rig's own is 7.
async fn edge(rig: &Rig, n: u8, epoch: i64) {
    let stmt = sql(
        "INSERT INTO edges (id, name, public_key, credential, status, cursor_epoch, cursor_seq, heartbeat_at, enrolled_at) \
         VALUES ($1, $2, $3, $3, 'active', $4, 0, $5, $5)",
    );
    let stmt = stmt.bind(EdgeId::mint(rig.env.now(), [n; 10]).as_str()).bind(format!("edge-{n}"));
    rig.app.store.execute(stmt.bind(vec![n]).bind(epoch).bind(rig.env.now())).await.unwrap();
}

/// A world of three edges, one of which takes nothing; a domain whose challenge is on its way to them.
async fn with_a_laggard(seed: u64) -> (Rig, DomainId) {
    let rig = Rig::new(seed).await;
    edge(&rig, 2, 7).await;
    edge(&rig, 3, 1).await;
    let tenant = rig.tenant("acme").await;
    let id = rig.claim(&tenant, "shop.acme.test").await;
    rig.publish(&id, "shop.acme.test").await;
    let waiting = || rig.count(sql("SELECT count(*) AS n FROM challenges WHERE removed_at IS NULL"));
    for _ in 0..200 {
        if waiting().await > 0 {
            return (rig, id);
        }
        rig.turn().await;
    }
    panic!("no challenge: {}", rig.story(&id).await);
}

#[tokio::test]
async fn b73_the_ca_is_told_only_when_every_edge_that_counts_has_the_token() {
    let (rig, id) = with_a_laggard(73).await;
    let began = rig.env.now();
    while rig.env.now().since(began) < Duration::from_secs(45) {
        rig.turn().await;
        let counters = rig.ca.state().counters().clone();
        assert!(counters.certificates_by_name.is_empty() && counters.failed_validations_by_name.is_empty(), "{counters:?}");
    }
    // It catches up within the minute.
    rig.app.store.execute(sql("UPDATE edges SET cursor_epoch = 7 WHERE name = 'edge-3'")).await.unwrap();
    rig.until_active(&id, HOUR).await;
    assert!(!rig.events(&id).await.iter().any(|e| e.contains("edges_lost")), "{:?}", rig.events(&id).await);
    assert!(rig.ca.state().counters().failed_validations_by_name.is_empty());
}

#[tokio::test]
async fn b73_an_edge_that_never_takes_the_token_is_left_behind_and_told() {
    let (rig, id) = with_a_laggard(74).await;
    rig.until_active(&id, HOUR).await;
    assert!(rig.events(&id).await.iter().any(|e| e.contains("edges_lost")), "{:?}", rig.events(&id).await);
    let lost = rig.count(sql("SELECT count(*) AS n FROM edges WHERE name = 'edge-3' AND lost_at IS NOT NULL")).await;
    assert_eq!(lost, 1);
    assert!(rig.ca.state().counters().failed_validations_by_name.is_empty());
}
