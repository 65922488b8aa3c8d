//! The API: what it answers, what it refuses, and that nobody sees another tenant's domains through any route.

use std::collections::BTreeSet;

use axum::body::Body;
use axum::http::Request;
use nameplate::web::ROUTES;
use serde_json::json;

use crate::support::web::{PUBLIC_URL, Web};

#[tokio::test]
async fn a_claim_is_made_once_and_shown_with_all_there_is_to_publish() {
    let web = Web::new(1).await;
    let (tenant, token) = web.tenant("acme").await;
    let made = web.api(&token, "POST", "/api/v1/domains", Some(json!({ "hostname": " Support.ACME.test. " }))).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let view = made.json();
    let id = view["id"].as_str().unwrap();
    assert_eq!(made.header("location"), format!("{PUBLIC_URL}/api/v1/domains/{id}"));
    assert!(made.header("etag").starts_with("\"v1."), "{:?}", made.headers);
    assert_eq!(view["page"], format!("{PUBLIC_URL}/domains/{id}"));
    assert_eq!(
        (&view["hostname"], &view["claim"], &view["serving"]),
        (&json!("support.acme.test"), &json!("awaiting_dns"), &json!(false))
    );
    assert_eq!(view["tenant"], json!({ "id": tenant.as_str(), "slug": "acme" }));
    let records: Vec<_> =
        view["records"].as_array().unwrap().iter().map(|r| format!("{} {}", r["kind"], r["host"])).collect();
    assert_eq!(records, ["\"TXT\" \"_nameplate-challenge.support\"", "\"CNAME\" \"support\""]);
    assert!(view["records"][0]["value"].as_str().unwrap().starts_with("nameplate-verify="));
    assert!(!view["events"].as_array().unwrap().is_empty());

    let again = web.api(&token, "POST", "/api/v1/domains", Some(json!({ "hostname": "support.acme.test" }))).await;
    assert_eq!((again.status.as_u16(), &again.json()["id"]), (200, &view["id"]));
    assert_eq!(again.json()["records"], view["records"]);
}

#[tokio::test]
async fn a_published_name_goes_live_and_the_view_says_so() {
    let web = Web::new(2).await;
    let (tenant, token) = web.tenant("acme").await;
    let id = web.rig.claim(&tenant, "support.acme.test").await;
    let before = web.api(&token, "GET", &format!("/api/v1/domains/{id}"), None).await.json();
    assert_eq!((&before["serving"], &before["active"]), (&json!(false), &json!(false)));
    web.rig.publish(&id, "support.acme.test").await;
    for _ in 0..400 {
        web.rig.turn().await;
        if web.rig.domain_text(&id, "claim").await.as_deref() == Some("live") {
            break;
        }
    }
    web.rig.edge_follows().await;
    let after = web.api(&token, "GET", &format!("/api/v1/domains/{id}"), None).await.json();
    assert_eq!(
        (&after["claim"], &after["serving"], &after["active"]),
        (&json!("live"), &json!(true), &json!(true)),
        "{after}"
    );
    assert_eq!(after["sentence"], "Visitors are served over HTTPS.");
    assert_eq!(after["rollout"], json!({ "counted": 1, "behind": [] }));
    assert!(after["certificate"]["not_after"].as_str().unwrap().ends_with('Z'));
    let left = |of: &str| after["certificate"][of].as_i64().unwrap();
    // Good for ninety days from an hour ago on.
    assert_eq!((left("days_left"), left("percent_left")), (89, 99));
    let checks: Vec<_> = after["checks"].as_array().unwrap().iter().map(|c| c["verdict"].as_str().unwrap()).collect();
    assert_eq!(checks, ["pass", "pass", "pass", "pass"]);
}

#[tokio::test]
async fn checks_are_asked_for_at_most_every_five_seconds() {
    let web = Web::new(3).await;
    let (tenant, token) = web.tenant("acme").await;
    let id = web.rig.claim(&tenant, "support.acme.test").await;
    let path = format!("/api/v1/domains/{id}/check");
    web.rig.hand.advance(std::time::Duration::from_secs(6));
    assert_eq!(web.api(&token, "POST", &path, None).await.status, 202);
    let soon = web.api(&token, "POST", &path, None).await;
    assert_eq!(soon.problem(), (429, "too_soon".to_owned()));
    assert_eq!(soon.header("retry-after"), "5");
    web.rig.hand.advance(std::time::Duration::from_secs(5));
    assert_eq!(web.api(&token, "POST", &path, None).await.status, 202);
}

#[tokio::test]
async fn removal_is_answered_with_what_became_of_it_and_refused_twice() {
    let web = Web::new(4).await;
    let (tenant, token) = web.tenant("acme").await;
    let id = web.rig.claim(&tenant, "support.acme.test").await;
    let path = format!("/api/v1/domains/{id}");
    let gone = web.api(&token, "DELETE", &path, None).await;
    assert_eq!((gone.status.as_u16(), &gone.json()["claim"]), (200, &json!("withdrawn")));
    let again = web.api(&token, "DELETE", &path, None).await;
    assert_eq!(again.problem(), (409, "already_removed".to_owned()));
    assert_eq!(again.json()["detail"], "This domain was removed already.");
    assert_eq!(web.api(&token, "POST", &format!("{path}/check"), None).await.problem(), (409, "claim_closed".to_owned()));
}

#[tokio::test]
async fn refused_hostnames_say_what_was_seen_and_what_to_type() {
    let web = Web::new(5).await;
    let (_, token) = web.tenant("acme").await;
    for (hostname, code, suggestion) in [
        ("https://shop.example.com/path?x=1", "hostname_is_url", Some("shop.example.com")),
        ("smart_panel.example.com", "hostname_underscore", Some("smart-panel.example.com")),
        ("*.shop.example.com", "hostname_wildcard", Some("shop.example.com")),
        ("co.uk", "hostname_is_public_suffix", None),
        ("shop.app.example", "hostname_reserved", None),
        ("shop\u{200b}.example.com", "hostname_invisible_character", Some("shop.example.com")),
    ] {
        let answer = web.api(&token, "POST", "/api/v1/domains", Some(json!({ "hostname": hostname }))).await;
        assert_eq!(answer.problem(), (422, code.to_owned()));
        let error = &answer.json()["errors"][0];
        assert_eq!((error["field"].as_str(), error["suggestion"].as_str()), (Some("/hostname"), suggestion));
    }
    assert_eq!(web.api(&token, "GET", "/api/v1/domains", None).await.json()["items"], json!([]));
}

#[tokio::test]
async fn tenants_are_the_operators_to_add_and_a_slug_is_never_given_twice() {
    let web = Web::new(6).await;
    let operator = web.operator.clone();
    let made = web.api(&operator, "POST", "/api/v1/tenants", Some(json!({ "slug": "Acme", "name": "Acme Inc." }))).await;
    assert_eq!(made.status, 201, "{}", made.body);
    assert_eq!((&made.json()["slug"], &made.json()["canonical_host"]), (&json!("acme"), &json!("acme.app.example")));
    let by_slug = web.api(&operator, "GET", "/api/v1/tenants/acme", None).await.json();
    assert_eq!(
        by_slug,
        web.api(&operator, "GET", made.header("location").strip_prefix(PUBLIC_URL).unwrap(), None).await.json()
    );
    for spelling in ["acme", "ACME", " Acme "] {
        let again = web.api(&operator, "POST", "/api/v1/tenants", Some(json!({ "slug": spelling }))).await;
        assert_eq!(again.problem(), (409, "slug_taken".to_owned()));
    }
    let reserved = web.api(&operator, "POST", "/api/v1/tenants", Some(json!({ "slug": "www" }))).await;
    assert_eq!(reserved.problem(), (422, "slug_invalid".to_owned()));

    for name in ["a\0b", "Acme\u{202e}gro", "Ac\u{200b}me"] {
        let unseen = web.api(&operator, "POST", "/api/v1/tenants", Some(json!({ "slug": "x1", "name": name }))).await;
        assert_eq!(unseen.problem(), (422, "name_unseen_character".to_owned()));
    }
    let junk = web.api(&operator, "GET", "/api/v1/tenants?cursor=junk", None).await;
    assert_eq!(junk.problem(), (422, "cursor_invalid".to_owned()));

    let (own, token) = web.tenant("zeta").await;
    let refused = web.api(&token, "POST", "/api/v1/tenants", Some(json!({ "slug": "more" }))).await;
    assert_eq!(refused.problem(), (403, "operator_needed".to_owned()));
    let seen = web.api(&token, "GET", "/api/v1/tenants", None).await.json();
    assert_eq!((seen["items"].as_array().unwrap().len(), &seen["items"][0]["id"]), (1, &json!(own.as_str())));
}

#[tokio::test]
async fn lists_are_walked_by_the_links_they_give() {
    let web = Web::new(7).await;
    let (acme, _) = web.tenant("acme").await;
    let (other, _) = web.tenant("other").await;
    for n in 0..5 {
        web.rig.claim(&acme, &format!("n{n}.acme.test")).await;
        web.rig.hand.advance(std::time::Duration::from_secs(1));
    }
    web.rig.claim(&other, "n0.acme.test").await;
    let mut path = Some("/api/v1/domains?tenant=acme&limit=2".to_owned());
    let (mut names, mut pages) = (Vec::new(), 0);
    while let Some(next) = path {
        let page = web.api(&web.operator, "GET", &next, None).await.json();
        names.extend(page["items"].as_array().unwrap().iter().map(|d| d["hostname"].as_str().unwrap().to_owned()));
        path = page["next"].as_str().map(|url| url.strip_prefix(PUBLIC_URL).unwrap().to_owned());
        pages += 1;
    }
    assert_eq!((names.len(), names.iter().collect::<BTreeSet<_>>().len(), pages), (5, 5, 3));
    let both = web.api(&web.operator, "GET", "/api/v1/domains?hostname=N0.acme.test", None).await.json();
    assert_eq!(both["items"].as_array().unwrap().len(), 2);
    for bad in ["limit=0", "limit=201", "cursor=xyz", "colour=red", "limit=many"] {
        let answer = web.api(&web.operator, "GET", &format!("/api/v1/domains?{bad}"), None).await;
        let (status, _) = answer.problem();
        assert!(matches!(status, 400 | 422), "{bad}: {}", answer.body);
    }
}

#[tokio::test]
async fn every_refusal_is_a_problem_document() {
    let web = Web::new(8).await;
    let (_, token) = web.tenant("acme").await;
    let post = |kind: &str, body: &str| {
        Request::builder()
            .method("POST")
            .uri("/api/v1/domains")
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", kind)
            .body(Body::from(body.to_owned()))
            .unwrap()
    };
    let large = format!("{{\"hostname\":\"{}\"}}", "a".repeat(100_000));
    for (request, expected) in [
        (post("application/json", "{"), (400, "bad_json")),
        (post("application/json", "{\"hostname\":7}"), (422, "wrong_fields")),
        (post("application/json", "{\"hostname\":\"a.example.com\",\"more\":1}"), (422, "wrong_fields")),
        (post("application/json", "[null,\"a.example.com\"]"), (422, "wrong_fields")),
        (post("text/plain", "{}"), (415, "not_json")),
        (post("application/json", &large), (413, "body_too_large")),
    ] {
        let (status, code) = web.send(request).await.problem();
        assert_eq!((status, code.as_str()), expected);
    }
    let list = web.send(post("application/json", "[]")).await.json()["detail"].to_string();
    assert!(list.contains("expected a JSON object") && !list.contains("ClaimBody"), "{list}");
    assert_eq!(web.api(&token, "GET", "/api/v2/domains", None).await.problem(), (404, "not_found".to_owned()));
    let method = web.api(&token, "PUT", "/api/v1/domains", None).await;
    assert_eq!(method.problem(), (405, "method_not_allowed".to_owned()));
    let allow: BTreeSet<&str> = method.header("allow").split(',').map(str::trim).collect();
    assert_eq!(allow, BTreeSet::from(["GET", "HEAD", "POST"]));
}

#[tokio::test]
async fn events_are_read_on_from_where_one_stopped() {
    let web = Web::new(11).await;
    let (acme, token) = web.tenant("acme").await;
    let (other, _) = web.tenant("other").await;
    web.rig.hand.advance(std::time::Duration::from_secs(1));
    web.rig.claim(&acme, "support.acme.test").await;
    web.rig.claim(&other, "support.other.test").await;
    let none = web.api(&token, "GET", "/api/v1/events", None).await.json();
    assert_eq!((none["items"].as_array().unwrap().len(), none["next"].is_string()), (0, true));
    number_events(&web).await;
    let all = web.api(&web.operator, "GET", "/api/v1/events", None).await.json();
    assert_eq!(all["items"].as_array().unwrap().len(), 4);
    let own = web.api(&token, "GET", "/api/v1/events?limit=1", None).await.json();
    assert_eq!(own["items"][0]["kind"], "tenant_added");
    let next = own["next"].as_str().unwrap().strip_prefix(PUBLIC_URL).unwrap();
    let rest = web.api(&token, "GET", next, None).await.json();
    assert_eq!((&rest["items"][0]["tenant_id"], rest["items"].as_array().unwrap().len()), (&json!(acme.as_str()), 1));
}

/// What the relay does.
async fn number_events(web: &Web) {
    use nameplate::store::sql;
    let rows = web.rig.app.store.query(sql("SELECT id FROM events ORDER BY id")).await.unwrap();
    for (row, n) in rows.iter().zip(1_i64..) {
        let stmt = sql("UPDATE events SET position = $2 WHERE id = $1").bind(row.text("id").unwrap()).bind(n);
        web.rig.app.store.execute(stmt).await.unwrap();
    }
}

#[test]
fn the_documentation_names_every_route() {
    let written = include_str!("../../docs/api.md");
    for route in ROUTES.iter().filter(|route| route.path.starts_with("/api")) {
        let heading = format!("### `{} {}`", route.method.to_uppercase(), route.path);
        assert!(written.contains(&heading), "docs/api.md does not name {} {}", route.method, route.path);
    }
    let headings = written.lines().filter(|line| line.starts_with("### `")).count();
    assert_eq!(headings, ROUTES.iter().filter(|route| route.path.starts_with("/api")).count());
}
