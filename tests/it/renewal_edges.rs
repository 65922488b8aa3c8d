//! Renewals and several edges: the CA is told when all that count have the token, and the certificate before is let go of when all serve
//! the new one.

use std::time::Duration;

use nameplate::model::id::{DomainId, EdgeId};
use nameplate::sandbox::ca::Windows;
use nameplate::store::sql;

use crate::support::probed;
use crate::support::renewals::{DAY, HOUR, NAME, certificates, live, number, renew_at};
use crate::support::rig::Rig;

/// A live name, due for renewal in a moment, and two more edges.
async fn due(seed: u64) -> (Rig, DomainId) {
    let rig = Rig::new(seed).await;
    rig.ca.windows(Windows::None);
    // Valid from now on only: edges have an hour before the switch.
    rig.ca.state().live_for(90 * DAY, Duration::ZERO);
    let id = live(&rig).await;
    for n in [2, 3] {
        let stmt =
            sql("INSERT INTO edges (id, name, public_key, credential, status, cursor_epoch, cursor_seq, heartbeat_at, enrolled_at) \
               VALUES ($1, $2, $3, $3, 'active', 7, 0, $4, $4)")
            .bind(EdgeId::mint(rig.env.now(), [n; 10]).as_str())
            .bind(format!("edge-{n}"))
            .bind(vec![n])
            .bind(rig.env.now());
        rig.app.store.execute(stmt).await.unwrap();
    }
    rig.pass_quickly(renew_at(&rig, &id).await.since(rig.env.now() + Duration::from_secs(5))).await;
    (rig, id)
}

async fn follows(rig: &Rig, edge: &'static str, epoch: i64) {
    let stmt = sql("UPDATE edges SET cursor_epoch = $2 WHERE name = $1").bind(edge).bind(epoch);
    rig.app.store.execute(stmt).await.unwrap();
}

async fn renewed(rig: &Rig, id: &DomainId) -> bool {
    rig.events(id).await.contains(&"renewed".to_owned())
}

const KEYS: &str = "SELECT count(*) AS n FROM certificates WHERE domain_id = $1 AND sealed_key IS NOT NULL";

/// B73 at a renewal: one edge lags behind when the token is published.
#[tokio::test]
async fn b73_the_ca_is_told_of_a_renewal_only_when_every_edge_that_counts_has_the_token() {
    let (rig, id) = due(370).await;
    follows(&rig, "edge-3", 6).await;
    let token = "SELECT count(*) AS n FROM challenges WHERE removed_at IS NULL";
    while rig.count(sql(token)).await == 0 {
        rig.turn().await;
        assert!(rig.env.now() < renew_at(&rig, &id).await + HOUR, "{}", rig.story(&id).await);
    }
    let began = rig.env.now();
    while rig.env.now().since(began) < Duration::from_secs(45) {
        rig.turn().await;
        assert_eq!(certificates(&rig, &id).await, 1, "{}", rig.story(&id).await);
    }
    follows(&rig, "edge-3", 7).await;
    rig.pass(HOUR / 4).await;
    assert_eq!(certificates(&rig, &id).await, 2, "{}", rig.story(&id).await);
    assert!(rig.ca.state().counters().failed_validations_by_name.is_empty());
    assert!(!rig.events(&id).await.contains(&"edges_lost".to_owned()), "it came within the minute");
}

/// B65: one edge goes on with the certificate before. That is seen and told apart, and nothing of what it serves is destroyed until it
/// serves the new one, or counts no more.
#[tokio::test]
async fn b65_an_edge_that_serves_the_certificate_before_is_seen_and_waited_for() {
    let (rig, id) = due(371).await;
    let first = rig.domain_text(&id, "certificate_id").await.unwrap();
    while certificates(&rig, &id).await == 1 {
        rig.turn().await;
        assert!(rig.env.now() < renew_at(&rig, &id).await + HOUR, "{}", rig.story(&id).await);
    }
    let second = rig.domain_text(&id, "certificate_id").await.unwrap();
    let shown = probed::stored(&rig.app, &first).await;
    let seen = probed::seen_instead(&rig.env, NAME, &second.parse().unwrap(), shown).await;
    probed::tells(&rig.app, "edge-2", &[seen]).await;
    rig.pass(3 * HOUR).await;
    assert_ne!(first, second);
    let serial = sql("SELECT serial FROM certificates WHERE id = $1").bind(second.as_str());
    let serial = rig.app.store.query(serial).await.unwrap()[0].text("serial").unwrap();
    assert_eq!(rig.serial_at_edge(NAME), Some(serial), "the others serve the new one");
    assert!(!renewed(&rig, &id).await, "{}", rig.story(&id).await);
    assert_eq!(number(&rig, &id, KEYS).await, 2, "what the edge serves is not destroyed");
    probed::tells(&rig.app, "edge-2", &[]).await;
    rig.pass(HOUR).await;
    assert!(renewed(&rig, &id).await, "{}", rig.story(&id).await);
    assert_eq!(number(&rig, &id, KEYS).await, 1);
    rig.check_invariants().await;
}
