//! A CA that refuses, cannot be reached or does not answer changes nothing but the time of the next attempt.

use std::time::Duration;

use nameplate::acme::{AcmeError, Call, Kind, ProblemDoc};
use nameplate::app;
use nameplate::model::id::DomainId;
use nameplate::store::sql;
use serde_json::json;

use crate::support::rig::Rig;

const HOUR: Duration = Duration::from_secs(3600);

fn error(kind: Kind, acted_on: bool) -> AcmeError {
    AcmeError { call: Call::NewOrder, kind, problem: None, status: None, retry_after: None, acted_on, cause: None }
}

fn limited(detail: &str, wait: u64) -> AcmeError {
    let problem = json!({"type": "urn:ietf:params:acme:error:rateLimited", "detail": detail, "status": 429});
    AcmeError {
        problem: ProblemDoc::new(problem),
        status: Some(429),
        retry_after: Some(Duration::from_secs(wait)),
        ..error(Kind::Refused, false)
    }
}

/// A name with its records in place.
async fn ordered(rig: &Rig, slug: &str, name: &str) -> DomainId {
    let tenant = rig.tenant(slug).await;
    let id = rig.claim(&tenant, name).await;
    rig.publish(&id, name).await;
    id
}

/// What is left once the name is active: so many orders at the CA, one certificate, no grant in hand.
async fn settled(rig: &Rig, name: &str) {
    rig.check_invariants().await;
    assert_eq!(rig.ca.state().counters().orders_by_name.get(name).copied(), Some(1));
    assert_eq!(rig.ca.state().counters().certificates_by_name.get(name).copied(), Some(1));
    assert_eq!(rig.count(sql("SELECT count(*) AS n FROM grants WHERE state = 'open'")).await, 0);
}

#[tokio::test]
async fn a_limit_of_the_account_stops_everybody_until_the_told_time() {
    let rig = Rig::new(31).await;
    rig.ca.refuse([limited("too many new orders recently", 600)]);
    let id = ordered(&rig, "acme", "a.acme.test").await;
    rig.turn().await;
    let began = rig.env.now();
    let other = ordered(&rig, "beta", "b.acme.test").await;
    rig.until_active(&id, HOUR).await;
    rig.until_active(&other, HOUR).await;
    let first = rig.ca.ordered_at()[0];
    assert!(first.since(began) > Duration::from_secs(500), "nobody ordered before the told time: {:?}", first.since(began));
    settled(&rig, "a.acme.test").await;
    settled(&rig, "b.acme.test").await;
}

/// B34: a limit of one name parks that name only.
#[tokio::test]
async fn b34_a_limit_of_one_name_stops_nobody_else() {
    let rig = Rig::new(32).await;
    rig.ca.refuse([limited("too many certificates already issued for acme.test", 86_400)]);
    let id = ordered(&rig, "acme", "a.acme.test").await;
    rig.pass(Duration::from_secs(60)).await;
    let began = rig.env.now();
    let other = ordered(&rig, "beta", "b.acme.test").await;
    rig.until_active(&other, HOUR).await;
    assert!(rig.env.now().since(began) < Duration::from_secs(120), "it took {:?}", rig.env.now().since(began));
    assert!(rig.active_since(&id).await.is_none());
    rig.until_active(&id, 30 * HOUR).await;
    settled(&rig, "a.acme.test").await;
}

#[tokio::test]
async fn a_ca_out_of_reach_is_asked_again_soon_and_costs_no_grant() {
    let rig = Rig::new(33).await;
    rig.ca.refuse((0..3).map(|_| error(Kind::Unreached, false)));
    let id = ordered(&rig, "acme", "a.acme.test").await;
    let began = rig.env.now();
    rig.until_active(&id, HOUR).await;
    assert!(rig.env.now().since(began) < Duration::from_secs(300), "it took {:?}", rig.env.now().since(began));
    settled(&rig, "a.acme.test").await;
    assert_eq!(rig.count(sql("SELECT count(*) AS n FROM spends")).await, 0, "what was surely not counted is given back");
}

/// An answer that never came: the order is lost, its spend counts, and the next try is not at once.
#[tokio::test]
async fn an_answer_that_never_comes_costs_one_grant_and_a_wait() {
    let rig = Rig::new(34).await;
    rig.ca.refuse([error(Kind::Unanswered, true), error(Kind::Unanswered, true)]);
    let id = ordered(&rig, "acme", "a.acme.test").await;
    let began = rig.env.now();
    rig.until_active(&id, 3 * HOUR).await;
    let lost = rig.count(sql("SELECT count(*) AS n FROM orders WHERE state = 'lost'")).await;
    assert_eq!(lost, 2, "{}", rig.story(&id).await);
    assert!(rig.env.now().since(began) > Duration::from_secs(60 + 600), "it took {:?}", rig.env.now().since(began));
    settled(&rig, "a.acme.test").await;
}

/// B29 at the level of a step: nonces refused again and again repeat the step with the same grant.
#[tokio::test]
async fn b29_refused_nonces_repeat_the_step_and_lose_no_grant() {
    let rig = Rig::new(35).await;
    let bad = json!({"type": "urn:ietf:params:acme:error:badNonce", "detail": "bad nonce", "status": 400});
    let nonce = || AcmeError { problem: ProblemDoc::new(bad.clone()), status: Some(400), ..error(Kind::Refused, false) };
    rig.ca.refuse([nonce(), nonce(), nonce()]);
    let id = ordered(&rig, "acme", "a.acme.test").await;
    rig.until_active(&id, HOUR).await;
    assert_eq!(rig.count(sql("SELECT count(*) AS n FROM grants")).await, 1, "one grant was enough");
    settled(&rig, "a.acme.test").await;
}

/// An operator renames the issuer: what waits goes to the new one, and nobody is stuck with a name that is not configured.
#[tokio::test]
async fn a_renamed_issuer_strands_nobody() {
    let mut rig = Rig::new(36).await;
    let id = ordered(&rig, "acme", "a.acme.test").await;
    let app = rig.new_worker();
    app::account::ensure_all(&app).await.unwrap();
    app::advance::advance(&app, &id).await.unwrap();
    assert_eq!(rig.domain_text(&id, "claim").await.unwrap(), "queued", "its order waits at the old issuer");
    rig.rename_issuer("other").await;
    rig.until_active(&id, HOUR).await;
    settled(&rig, "a.acme.test").await;
    let late = ordered(&rig, "beta", "b.acme.test").await;
    rig.until_active(&late, HOUR).await;
    settled(&rig, "b.acme.test").await;
}
