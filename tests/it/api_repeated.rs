//! Requests that are sent again under one key: done once, answered the same, whatever breaks in between.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use nameplate::store::{kept_answers, sql};
use serde_json::{Value, json};

use crate::support::rig::Rig;
use crate::support::stores::{Kind, TestStore};
use crate::support::web::{Answer, Web};

fn keyed(token: &str, path: &str, key: &str, body: &Value) -> Request<Body> {
    Request::builder()
        .method("POST")
        .uri(path)
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", "application/json")
        .header("idempotency-key", key)
        .body(Body::from(body.to_string()))
        .unwrap()
}

async fn count(web: &Web, stmt: &'static str) -> i64 {
    web.rig.count(sql(stmt)).await
}

/// What two answers to one request share.
fn same(a: &Answer, b: &Answer) {
    assert_eq!((a.status, &a.body), (b.status, &b.body));
    for header in ["location", "etag", "content-type"] {
        assert_eq!(a.header(header), b.header(header), "{header}");
    }
    assert_eq!((a.header("idempotency-replayed"), b.header("idempotency-replayed")), ("", "true"));
}

#[tokio::test]
async fn the_same_request_is_done_once_and_answered_the_same_on_every_route_that_makes_something() {
    let web = Web::new(61).await;
    let operator = web.operator.clone();
    for (n, (path, body)) in [
        ("/api/v1/tenants", json!({ "slug": "acme" })),
        ("/api/v1/domains", json!({ "hostname": "a.acme.test", "tenant": "acme" })),
        ("/api/v1/tenants/acme/contacts", json!({ "email": "dns@acme.test" })),
        ("/api/v1/tokens", json!({ "label": "ci", "tenant": "acme" })),
        ("/api/v1/reissues", json!({ "before": "2040-01-15T08:00:00Z" })),
    ]
    .into_iter()
    .enumerate()
    {
        let key = format!("key-{n}");
        let first = web.send(keyed(&operator, path, &key, &body)).await;
        assert_eq!(first.status, 201, "{path}: {}", first.body);
        web.rig.hand.advance(Duration::from_secs(60));
        same(&first, &web.send(keyed(&operator, path, &key, &body)).await);
        same(&first, &web.send(keyed(&operator, path, &format!("\"{key}\""), &body)).await);
        let mut other = body.clone();
        other["hostname"] = json!("b.acme.test");
        let reused = web.send(keyed(&operator, path, &key, &other)).await;
        // Fields that the route does not know are refused before the key is looked at.
        assert_eq!(reused.status, 422, "{path}: {}", reused.body);
    }
    let reused = web.send(keyed(&operator, "/api/v1/tenants", "key-0", &json!({ "slug": "beta" }))).await;
    assert_eq!(reused.problem(), (422, "idempotency_key_reused".to_owned()));
    assert_eq!(count(&web, "SELECT COUNT(*) AS n FROM tenants").await, 1);
    assert_eq!(count(&web, "SELECT COUNT(*) AS n FROM domains").await, 1);
    assert_eq!(count(&web, "SELECT COUNT(*) AS n FROM contacts").await, 1);
    assert_eq!(count(&web, "SELECT COUNT(*) AS n FROM tokens").await, 2);
    assert_eq!(count(&web, "SELECT COUNT(*) AS n FROM reissues").await, 1);
}

#[tokio::test]
async fn a_kept_secret_is_sealed_and_opens_as_it_was_given() {
    let web = Web::new(62).await;
    let (_, token) = web.tenant("acme").await;
    let made = web.send(keyed(&token, "/api/v1/tokens", "k", &json!({ "label": "ci" }))).await;
    let secret = made.json()["token"].as_str().unwrap().to_owned();
    assert_eq!(web.api(&secret, "GET", "/api/v1/domains", None).await.status, 200);
    let kept = web.rig.app.store.query(sql("SELECT answer FROM kept_answers")).await.unwrap()[0].blob("answer").unwrap();
    let readable = String::from_utf8_lossy(&kept);
    assert!(!readable.contains(&secret) && !readable.contains("npt_"), "the secret is kept in plain");
    same(&made, &web.send(keyed(&token, "/api/v1/tokens", "k", &json!({ "label": "ci" }))).await);
}

#[tokio::test]
async fn keys_are_each_callers_own_and_end_after_a_day() {
    let web = Web::new(63).await;
    let (_, acme) = web.tenant("acme").await;
    let (_, other) = web.tenant("other").await;
    let body = json!({ "hostname": "a.acme.test" });
    let first = web.send(keyed(&acme, "/api/v1/domains", "k", &body)).await.json();
    let second = web.send(keyed(&other, "/api/v1/domains", "k", &body)).await;
    assert_eq!((second.status.as_u16(), second.header("idempotency-replayed")), (201, ""));
    assert_ne!(first["id"], second.json()["id"]);
    web.rig.hand.advance(Duration::from_secs(24 * 3600 - 1));
    assert_eq!(kept_answers::prune(&web.rig.app.store, web.rig.env.now()).await.unwrap(), 0);
    web.rig.hand.advance(Duration::from_secs(1));
    // Over, though nobody pruned it yet: the same claim is found again, as it would be without a key.
    let later = web.send(keyed(&acme, "/api/v1/domains", "k", &body)).await;
    assert_eq!((later.status.as_u16(), later.header("idempotency-replayed")), (200, ""));
    assert_eq!(kept_answers::prune(&web.rig.app.store, web.rig.env.now()).await.unwrap(), 1);
}

#[tokio::test]
async fn a_refused_request_leaves_its_key_free() {
    let web = Web::new(64).await;
    let operator = web.operator.clone();
    let taken = web.api(&operator, "POST", "/api/v1/tenants", Some(json!({ "slug": "acme" }))).await;
    assert_eq!(taken.status, 201);
    let refused = web.send(keyed(&operator, "/api/v1/tenants", "k", &json!({ "slug": "acme" }))).await;
    assert_eq!(refused.problem(), (409, "slug_taken".to_owned()));
    let other = web.send(keyed(&operator, "/api/v1/tenants", "k", &json!({ "slug": "beta" }))).await;
    assert_eq!(other.status, 201, "{}", other.body);
    for key in ["", "a b", &"k".repeat(256)] {
        let strange = web.send(keyed(&operator, "/api/v1/tenants", key, &json!({ "slug": "gamma" }))).await;
        assert_eq!(strange.problem(), (400, "idempotency_key_invalid".to_owned()));
    }
    assert_eq!(count(&web, "SELECT COUNT(*) AS n FROM tenants").await, 2);
}

#[tokio::test]
async fn a_request_cut_off_at_any_moment_is_done_once_or_not_at_all() {
    let web = Web::new(65).await;
    let (_, token) = web.tenant("acme").await;
    let mut finished = 0;
    for polls in 0..60 {
        let body = json!({ "label": format!("token {polls}") });
        let request = || keyed(&token, "/api/v1/tokens", &format!("key-{polls}"), &body);
        {
            let mut sending = pin!(web.send(request()));
            for _ in 0..polls {
                let mut context = Context::from_waker(Waker::noop());
                if let Poll::Ready(answer) = sending.as_mut().poll(&mut context) {
                    assert_eq!(answer.status, 201);
                    finished += 1;
                    break;
                }
                // The database's own thread gets on meanwhile.
                tokio::task::yield_now().await;
                std::thread::yield_now();
            }
        }
        let mut again = web.send(request()).await;
        while again.status == 409 {
            again = web.send(request()).await;
        }
        assert_eq!(again.status, 201, "{}", again.body);
        let secret = again.json()["token"].as_str().unwrap().to_owned();
        assert_eq!(web.api(&secret, "GET", "/api/v1/domains", None).await.status, 200);
    }
    assert!(finished < 60);
    assert_eq!(count(&web, "SELECT COUNT(*) AS n FROM tokens WHERE label LIKE 'token %'").await, 60);
    assert_eq!(count(&web, "SELECT COUNT(*) AS n FROM kept_answers WHERE answer IS NULL").await, 0);
}

/// Two processes on one database get the same request at once: it is done once, and both hear the same or are told to wait.
#[tokio::test(flavor = "multi_thread")]
async fn of_many_at_once_in_two_processes_one_does_it() {
    for kind in [Kind::SqliteFile, Kind::Postgres] {
        let test = TestStore::blank(kind).await;
        let web = Web::on(Rig::on(66, &test.url).await, "").await;
        let (_, token) = web.tenant("acme").await;
        let routers = [web.router.clone(), web.beside()];
        for round in 0..5 {
            let (key, hostname) = (format!("round-{round}"), format!("h{round}.acme.test"));
            let sending = (0..12).map(|n| {
                let request = keyed(&token, "/api/v1/domains", &key, &json!({ "hostname": hostname }));
                let router = routers[n % 2].clone();
                tokio::spawn(async move { Web::send_to(&router, request).await })
            });
            let mut answers = Vec::new();
            for sent in sending.collect::<Vec<_>>() {
                answers.push(sent.await.unwrap());
            }
            let done: Vec<&Answer> = answers.iter().filter(|answer| answer.status == 201).collect();
            assert!(!done.is_empty());
            assert_eq!(done.iter().filter(|answer| answer.header("idempotency-replayed").is_empty()).count(), 1);
            assert!(done.iter().all(|answer| answer.body == done[0].body));
            for answer in answers.iter().filter(|answer| answer.status != 201) {
                assert_eq!(answer.problem(), (409, "idempotency_in_flight".to_owned()));
                assert_eq!(answer.header("retry-after"), "1");
            }
        }
        assert_eq!(count(&web, "SELECT COUNT(*) AS n FROM domains").await, 5);
        web.rig.app.store.close().await;
        test.remove().await;
    }
}

/// Without a key, claims of one tenant on one name still meet in one.
#[tokio::test(flavor = "multi_thread")]
async fn claims_at_once_without_a_key_meet_in_one() {
    for kind in [Kind::SqliteFile, Kind::Postgres] {
        let test = TestStore::blank(kind).await;
        let web = Web::on(Rig::on(67, &test.url).await, "").await;
        let (_, token) = web.tenant("acme").await;
        let sending: Vec<_> = (0..12)
            .map(|_| {
                let body = json!({ "hostname": "one.acme.test" }).to_string();
                let request = Request::post("/api/v1/domains")
                    .header("authorization", format!("Bearer {token}"))
                    .header("content-type", "application/json")
                    .body(Body::from(body))
                    .unwrap();
                let router = web.router.clone();
                tokio::spawn(async move { Web::send_to(&router, request).await })
            })
            .collect();
        let (mut made, mut ids) = (0, std::collections::BTreeSet::new());
        for sent in sending {
            let answer = sent.await.unwrap();
            assert!(matches!(answer.status.as_u16(), 200 | 201), "{}", answer.body);
            made += usize::from(answer.status == 201);
            ids.insert(answer.json()["id"].as_str().unwrap().to_owned());
        }
        assert_eq!((made, ids.len()), (1, 1), "{kind:?}");
        web.rig.app.store.close().await;
        test.remove().await;
    }
}
