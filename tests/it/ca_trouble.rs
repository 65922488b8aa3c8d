//! A CA that refuses, cannot be reached or does not answer changes nothing but the time of the next attempt.

use std::time::Duration;

use nameplate::acme::{AcmeError, Call, Kind, ProblemDoc};
use nameplate::app;
use nameplate::model::id::DomainId;
use nameplate::model::issuer::Circuit;
use nameplate::model::limits::{Closed, LimitName};
use nameplate::store::{issuer_health, issuers, sql};
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

/// B34: the limit of a registered domain parks what is under it, and nobody else; it says that others used it up.
#[tokio::test]
async fn b34_a_limit_of_one_domain_stops_nobody_else() {
    let rig = Rig::new(32).await;
    rig.also_zone("beta.test");
    rig.ca.refuse([limited("too many certificates (50) already issued for \"acme.test\" in the last 168h0m0s", 86_400)]);
    let id = ordered(&rig, "acme", "a.acme.test").await;
    rig.pass(Duration::from_secs(60)).await;
    let began = rig.env.now();
    let sibling = ordered(&rig, "gamma", "c.acme.test").await;
    let other = ordered(&rig, "beta", "b.beta.test").await;
    rig.until_active(&other, HOUR).await;
    assert!(rig.env.now().since(began) < Duration::from_secs(120), "it took {:?}", rig.env.now().since(began));
    rig.pass(Duration::from_secs(120)).await;
    let budgets = app::fleet::budgets(&rig.app).await.unwrap();
    let row = budgets[0].tokens.iter().find(|t| t.limit_name == LimitName::CertificatesPerDomain).unwrap();
    assert_eq!((row.key.as_str(), row.left, row.closed.as_ref().unwrap().why), ("acme.test", 0, Closed::Others));
    let queues = app::fleet::played(&rig.app).await.unwrap();
    assert_eq!(queues.queues[0].orders.len(), 2);
    assert!(queues.queues[0].orders.iter().all(|o| o.held.is_some_and(|(l, _)| l == LimitName::CertificatesPerDomain)));
    assert!(rig.active_since(&id).await.is_none() && rig.active_since(&sibling).await.is_none());
    assert_eq!(rig.ca.asked(), 2, "nobody asked the CA again for the domain");
    rig.until_active(&id, 30 * HOUR).await;
    rig.until_active(&sibling, 30 * HOUR).await;
    settled(&rig, "a.acme.test").await;
    assert_eq!(rig.count(sql("SELECT count(*) AS n FROM ledger WHERE closed IS NOT NULL")).await, 0);
}

/// B32: without a header the wait is the one in the CA's words; without either it grows with every refusal.
#[tokio::test]
async fn b32_an_untold_wait_grows() {
    let rig = Rig::new(37).await;
    let again = || AcmeError { retry_after: None, ..limited("too many new orders from this account", 1) };
    rig.ca.refuse([again(), again(), again()]);
    let id = ordered(&rig, "acme", "a.acme.test").await;
    let began = rig.env.now();
    rig.until_active(&id, 24 * HOUR).await;
    let took = rig.env.now().since(began);
    // One hour, then two, then five.
    assert!((8 * HOUR..9 * HOUR).contains(&took), "it took {took:?}");
    settled(&rig, "a.acme.test").await;

    let rig = Rig::new(38).await;
    let until = rig.env.now() + 3 * HOUR;
    let words = until.rfc3339().replace('T', " ").replace('Z', " UTC");
    rig.ca.refuse([AcmeError {
        retry_after: None,
        ..limited(&format!("too many new orders, retry after {words}: see x"), 1)
    }]);
    let id = ordered(&rig, "acme", "a.acme.test").await;
    rig.until_active(&id, 24 * HOUR).await;
    let off = rig.ca.ordered_at()[0].since(until);
    assert!(rig.ca.ordered_at()[0] >= until && off < Duration::from_secs(700), "{off:?}");
}

/// A name that the CA paused is a state of its own, with the CA's link; nothing is asked for it for a day, and nobody else waits.
#[tokio::test]
async fn a_paused_name_is_told_with_the_cas_link() {
    let rig = Rig::new(39).await;
    let link = "https://portal.letsencrypt.org/sfe/v1/unpause?jwt=abc";
    let said = format!(
        "Your account is temporarily prevented from requesting certificates for a.acme.test and possibly others. Please visit: {link}"
    );
    rig.ca.refuse([AcmeError { retry_after: None, ..limited(&said, 1) }]);
    let id = ordered(&rig, "acme", "a.acme.test").await;
    rig.pass(Duration::from_secs(60)).await;
    let other = ordered(&rig, "beta", "b.acme.test").await;
    rig.until_active(&other, HOUR).await;
    let budgets = app::fleet::budgets(&rig.app).await.unwrap();
    let row = budgets[0].tokens.iter().find(|t| t.closed.is_some()).unwrap();
    let shut = row.closed.as_ref().unwrap();
    assert_eq!((row.key.as_str(), shut.why, shut.link.as_deref()), ("a.acme.test", Closed::Paused, Some(link)));
    rig.pass(20 * HOUR).await;
    assert_eq!(rig.ca.asked(), 2, "the paused name is left alone");
    assert_eq!(rig.count(sql("SELECT count(*) AS n FROM orders WHERE state = 'failed'")).await, 0);
    rig.until_active(&id, 48 * HOUR).await;
    rig.check_invariants().await;
}

/// A CA that fails again and again is left alone, asked for one order to find out, and used again once that works.
#[tokio::test]
async fn a_failing_ca_opens_the_circuit_and_one_probe_closes_it() {
    let rig = Rig::new(40).await;
    let mut ids = Vec::new();
    for n in 0..30 {
        ids.push(ordered(&rig, &format!("t{n}"), &format!("n{n}.acme.test")).await);
    }
    rig.ca.refuse((0..34).map(|_| error(Kind::Unreached, false)));
    while rig.ca.asked() < 30 {
        rig.turn().await;
    }
    let health = issuer_health::all(&rig.app.store).await.unwrap();
    let health = health.values().next().unwrap();
    assert!(matches!(health.circuit(rig.env.now()), Circuit::Open(_)), "{health:?}");
    let Circuit::Open(until) = health.circuit(rig.env.now()) else { unreachable!("it is open") };
    let asked_before = rig.ca.asked();
    rig.hand.advance_to(until - Duration::from_secs(1));
    rig.turn().await;
    assert_eq!(rig.ca.asked(), asked_before, "nobody asks while it is open");
    for id in &ids {
        rig.until_active(id, 6 * HOUR).await;
    }
    let health = issuer_health::all(&rig.app.store).await.unwrap();
    assert_eq!(health.values().next().unwrap().circuit(rig.env.now()), Circuit::Closed);
    rig.check_invariants().await;
    assert!(rig.ca.state().counters().certificates_by_name.values().all(|n| *n == 1));
}

/// B36: an account that the CA does not know, or has shut, is one loud state: nothing loops, no name fails, and one strange answer
/// halts nobody for long.
#[tokio::test]
async fn b36_an_account_that_cannot_be_used_halts_the_issuer() {
    for kind in ["accountDoesNotExist", "unauthorized"] {
        let rig = Rig::new(41).await;
        let doc = json!({"type": format!("urn:ietf:params:acme:error:{kind}"), "detail": "no such account", "status": 400});
        let gone = || AcmeError { problem: ProblemDoc::new(doc.clone()), status: Some(400), ..error(Kind::Refused, false) };
        rig.ca.refuse((0..1_000).map(|_| gone()));
        let id = ordered(&rig, "acme", "a.acme.test").await;
        while rig.ca.asked() == 0 {
            rig.turn().await;
        }
        let budgets = app::fleet::budgets(&rig.app).await.unwrap();
        assert_eq!(budgets[0].circuit, Circuit::Halted);
        assert!(budgets[0].halted.as_ref().unwrap().contains("no such account"));
        assert_eq!(rig.count(sql("SELECT count(*) AS n FROM spends")).await, 0, "the CA counted nothing");
        // The CA says that the account is well and refuses all the same.
        rig.pass(96 * HOUR).await;
        assert!((4..=9).contains(&rig.ca.asked()), "{kind}: asked {} times in four days", rig.ca.asked());
        assert_eq!(rig.count(sql("SELECT count(*) AS n FROM orders WHERE state = 'failed'")).await, 0);
        rig.ca.refuse_nothing();
        let issuer = issuers::list(&rig.app.store).await.unwrap().remove(0);
        let mut tx = rig.app.store.begin().await.unwrap();
        issuer_health::trust_again(&mut tx, &issuer.id).await.unwrap();
        tx.commit().await.unwrap();
        rig.until_active(&id, HOUR).await;
        settled(&rig, "a.acme.test").await;
    }
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
