//! Webhooks and alerts over the API and the command line.

use std::time::Duration;

use nameplate::app::alerts;
use nameplate::store::{census, sql};
use serde_json::json;

use crate::support::told::Told;
use crate::support::web::Web;

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn a_webhook_is_added_with_a_secret_that_is_shown_once() {
    let web = Web::new(71).await;
    let (_, acme) = web.tenant("acme").await;
    let body = json!({ "url": "https://hooks.acme.com/in", "kinds": ["removed", "active", "active"] });
    let made = web.api(&acme, "POST", "/api/v1/webhooks", Some(body)).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let made = made.json();
    let (id, secret) = (made["id"].as_str().unwrap(), made["secret"].as_str().unwrap());
    assert!(secret.starts_with("whsec_") && id.starts_with("whk_"));
    assert_eq!(made["kinds"], json!(["active", "removed"]));
    for path in ["/api/v1/webhooks".to_owned(), format!("/api/v1/webhooks/{id}"), "/api/v1/events".to_owned()] {
        let shown = web.api(&acme, "GET", &path, None).await;
        assert_eq!(shown.status, 200);
        assert!(!shown.body.contains("whsec_"), "{path}: {}", shown.body);
    }
    let rotated = web.api(&acme, "POST", &format!("/api/v1/webhooks/{id}/rotate-secret"), None).await.json();
    assert!(rotated["secret"].as_str().unwrap() != secret && rotated["previous_secret_until"].is_string());
    let gone = web.api(&acme, "DELETE", &format!("/api/v1/webhooks/{id}"), None).await;
    assert_eq!(gone.status, 204);
    assert_eq!(web.api(&acme, "GET", &format!("/api/v1/webhooks/{id}"), None).await.problem().1, "webhook_not_found");
}

#[tokio::test]
async fn hostile_urls_and_strange_kinds_are_refused() {
    let web = Web::new(72).await;
    let (_, acme) = web.tenant("acme").await;
    for (url, kinds, code) in [
        ("http://hooks.acme.com/", json!(["active"]), "url_invalid"),
        ("https://user@hooks.acme.com/", json!(["active"]), "url_invalid"),
        ("https://127.0.0.1/", json!(["active"]), "url_invalid"),
        ("https://2130706433/", json!(["active"]), "url_invalid"),
        ("https://0x7f000001/", json!(["active"]), "url_invalid"),
        ("https://[::ffff:10.0.0.1]/", json!(["active"]), "url_invalid"),
        ("https://localhost/", json!(["active"]), "url_invalid"),
        ("https://hooks.acme.com:5432/", json!(["active"]), "url_invalid"),
        ("https://hooks.acme.com/", json!([]), "event_kinds_invalid"),
        ("https://hooks.acme.com/", json!(["nonsense"]), "event_kinds_invalid"),
        ("https://hooks.acme.com/", json!(["alert_raised"]), "event_kinds_invalid"),
        ("https://hooks.acme.com/", json!("active"), "wrong_fields"),
    ] {
        let answer = web.api(&acme, "POST", "/api/v1/webhooks", Some(json!({ "url": url, "kinds": kinds }))).await;
        assert_eq!(answer.problem(), (422, code.to_owned()), "{url} {kinds}");
    }
    // The platform's own are for operators.
    let body = json!({ "url": "https://hooks.acme.com/", "kinds": ["*"], "platform": true });
    assert_eq!(web.api(&acme, "POST", "/api/v1/webhooks", Some(body.clone())).await.problem().1, "operator_needed");
    let made = web.api(&web.operator, "POST", "/api/v1/webhooks", Some(body)).await;
    assert_eq!(made.status, 201, "{}", made.body);
    assert!(made.json()["tenant_id"].is_null());
    let id = made.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(web.api(&acme, "GET", &format!("/api/v1/webhooks/{id}"), None).await.problem().1, "webhook_not_found");
    let both = json!({ "url": "https://hooks.acme.com/", "kinds": ["*"], "platform": true, "tenant": "acme" });
    assert_eq!(web.api(&web.operator, "POST", "/api/v1/webhooks", Some(both)).await.problem().1, "scope_unclear");
}

#[tokio::test]
async fn a_tenant_may_have_twenty() {
    let web = Web::new(73).await;
    let (_, acme) = web.tenant("acme").await;
    for n in 0..21 {
        let body = json!({ "url": format!("https://hooks.acme.com/{n}"), "kinds": ["*"] });
        let answer = web.api(&acme, "POST", "/api/v1/webhooks", Some(body)).await;
        if n < 20 {
            assert_eq!(answer.status, 201, "{}", answer.body);
        } else {
            assert_eq!(answer.problem(), (409, "too_many_webhooks".to_owned()));
        }
    }
    let (_, other) = web.tenant("other").await;
    let body = json!({ "url": "https://hooks.acme.com/", "kinds": ["*"] });
    assert_eq!(web.api(&other, "POST", "/api/v1/webhooks", Some(body)).await.status, 201);
}

#[tokio::test]
async fn deliveries_are_listed_tried_and_sent_again() {
    let web = Web::new(74).await;
    let (tenant, acme) = web.tenant("acme").await;
    let told = Told::on(web.rig).await;
    let (id, _) = told.webhook(Some(&tenant), &["claimed"]).await;
    told.receivers.answer(|_| Ok(500));
    told.rig.claim(&tenant, "a.acme.test").await;
    told.beats(Duration::from_secs(60)).await;
    let api = async |method: &str, path: &str, body: Option<serde_json::Value>| {
        let mut request = axum::http::Request::builder().method(method).uri(format!("/api/v1/webhooks/{id}{path}"));
        request = request.header("authorization", format!("Bearer {acme}")).header("content-type", "application/json");
        let body = body.map_or_else(axum::body::Body::empty, |json| axum::body::Body::from(json.to_string()));
        Web::send_to(&web.router, request.body(body).unwrap()).await
    };
    let listed = api("GET", "/deliveries?state=pending", None).await.json();
    let item = &listed["items"][0];
    assert_eq!((item["kind"].as_str(), item["status"].as_i64()), (Some("claimed"), Some(500)));
    assert_eq!(item["error"], "it answered 500");
    assert_eq!(api("GET", "/deliveries?state=odd", None).await.problem().1, "delivery_state_invalid");
    let event = item["event"].as_str().unwrap().to_owned();
    told.receivers.up();
    // Not later, but now, as it was asked for.
    told.rig.hand.advance(Duration::from_secs(61));
    assert_eq!(api("POST", &format!("/replay?event={event}"), None).await.json()["replayed"], 1);
    told.beats(Duration::from_secs(300)).await;
    assert_eq!(told.receivers.kinds(), ["claimed"]);
    assert_eq!(api("POST", &format!("/replay?event={event}"), None).await.json()["replayed"], 1);
    told.beats(Duration::from_secs(60)).await;
    let taken = told.receivers.taken();
    assert_eq!((taken.len(), &taken[0].id), (2, &taken[1].id), "sent again under the same id");
    for (query, code) in [
        (String::new(), "replay_unclear"),
        (format!("?event={event}&given_up_since=2020-01-01T00:00:00Z"), "replay_unclear"),
        ("?given_up_since=yesterday".to_owned(), "time_invalid"),
        ("?event=evt_00000000000000000000000000000000".to_owned(), "delivery_not_found"),
    ] {
        assert_eq!(api("POST", &format!("/replay{query}"), None).await.problem().1, code);
    }
    let tried = api("POST", "/test", None).await;
    assert_eq!(tried.status, 202);
    told.beats(Duration::from_secs(60)).await;
    assert_eq!(told.receivers.taken().last().unwrap().id, tried.json()["event"].as_str().unwrap());
    assert_eq!(told.receivers.kinds().last().unwrap(), "webhook_test");
}

#[tokio::test]
async fn alerts_are_listed_to_those_whom_they_concern() {
    let web = Web::new(75).await;
    let (acme, acme_token) = web.tenant("acme").await;
    let (_, other_token) = web.tenant("other").await;
    let told = Told::on(web.rig).await;
    let id = told.rig.claim(&acme, "a.acme.test").await;
    told.rig.publish(&id, "a.acme.test").await;
    told.rig.until_active(&id, HOUR).await;
    told.rig.hand.advance(Duration::from_secs(75 * 86_400));
    told.beats(HOUR).await;
    let list = async |token: &str, query: &str| {
        let request = axum::http::Request::builder()
            .uri(format!("/api/v1/alerts{query}"))
            .header("authorization", format!("Bearer {token}"));
        Web::send_to(&web.router, request.body(axum::body::Body::empty()).unwrap()).await.json()["items"]
            .as_array()
            .unwrap()
            .clone()
    };
    let own = list(&acme_token, "").await;
    assert_eq!(own.len(), 1);
    assert_eq!((own[0]["kind"].as_str(), own[0]["hostname"].as_str()), (Some("certificate_ending"), Some("a.acme.test")));
    assert_eq!((own[0]["threshold_percent"].as_i64(), &own[0]["resolved_at"]), (Some(25), &json!(null)));
    assert!(list(&other_token, "?resolved=true").await.is_empty());
    let all = list(&web.operator, "").await;
    assert!(all.iter().any(|a| a["kind"] == "certificates_ending" && a["count"] == 1), "{all:?}");
    told.rig.app.store.execute(sql("UPDATE domains SET claim = 'releasing'")).await.unwrap();
    told.touch_all().await;
    told.beats(HOUR).await;
    assert!(list(&acme_token, "").await.is_empty());
    assert_eq!(list(&acme_token, "?resolved=true").await[0]["resolution"], "let_go");
}

#[tokio::test]
async fn the_operators_pages_tell_what_is_wrong_and_for_what_cause() {
    let web = Web::new(76).await;
    let (acme, _) = web.tenant("acme").await;
    let id = web.rig.claim(&acme, "a.acme.test").await;
    web.rig.publish(&id, "a.acme.test").await;
    web.rig.until_active(&id, HOUR).await;
    let operator = web.signed_in_operator().await;
    let quiet = web.page(&operator, "/operator/alerts").await.body;
    assert!(quiet.contains("Nothing is wrong with the platform."), "{quiet}");
    assert!(!web.page(&operator, "/operator/expiry").await.body.contains("<rect class=\"op-fill-act\""));
    web.rig.hand.advance(Duration::from_secs(75 * 86_400));
    web.rig.edge_follows().await;
    let settings = alerts::AlertSettings::default();
    alerts::pass(&web.rig.app, &settings).await.unwrap();
    let operator = web.signed_in_operator().await;
    let page = web.page(&operator, "/operator/alerts").await.body;
    for text in
        ["certificates_ending", "less than 25 %", &format!("/operator/domains/{id}"), "The renewal is late on our side."]
    {
        assert!(page.contains(text), "{text} in {page}");
    }
    assert!(web.page(&operator, "/operator/expiry").await.body.contains("<rect class=\"op-fill-act\""));
    let census = census::take(&web.rig.app.store, web.rig.env.now(), HOUR).await.unwrap();
    assert!(census.alerts.contains(&("certificate_ending".to_owned(), 1)), "{:?}", census.alerts);
    assert!(census.ending.iter().any(|(within, n)| within == "30d" && *n == 1), "{:?}", census.ending);
    let hostile = "\"><script>alert('x')</script>";
    web.rig.app.store.execute(sql("UPDATE alerts SET said = $1, kind = $1").bind(hostile)).await.unwrap();
    let page = web.page(&operator, "/operator/alerts").await.body;
    assert!(!page.contains(hostile) && page.contains("&#60;script&#62;"), "{page}");
}
