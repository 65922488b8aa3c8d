//! Nobody sees or touches what is another tenant's, through any route: generated from the list of routes and from the API's
//! description, so that a new route, or a new parameter, is tried by itself or fails until it says how.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use nameplate::app::tokens::{self, Principal};
use nameplate::store::sql;
use nameplate::web::{ROUTES, Route};
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;

use crate::support::web::{Answer, PUBLIC_URL, Web};

/// How a route is tried.
enum Way {
    /// It takes no token and says nothing of anybody.
    Open,
    /// The ids in its path are of these kinds, in order, and its body is this.
    Ids(&'static [&'static str], Sent),
    /// It has no ids in its path.
    Plain(Sent),
    /// A page for whoever is signed in, with ids of these kinds in its path; tried with another tenant's session.
    Page(&'static [&'static str], Sent),
    /// A secret in the path, or a sign-in, is all that opens it; its own tests try that.
    Secret,
}

/// What is sent to it. `TENANT` and `DOMAIN` in it stand for one.
enum Sent {
    Nothing,
    Json(&'static str),
    Csv(&'static str),
    Form(&'static str),
}

/// Every route declares itself here.
fn way(route: &Route) -> Way {
    use Sent::{Csv, Form, Json, Nothing};
    match (route.method, route.path) {
        (_, path) if path.starts_with("/assets/") => Way::Open,
        (_, "/" | "/healthz" | "/connected" | "/api/openapi.json") => Way::Open,
        (_, "/api/docs" | "/api/docs/documents" | "/api/docs/problems") => Way::Open,
        ("post", "/api/v1/tenants") => Way::Plain(Json(r#"{"slug":"more"}"#)),
        ("post", "/api/v1/domains") => Way::Plain(Json(r#"{"hostname":"new.acme.test","tenant":"TENANT"}"#)),
        ("post", "/api/v1/tokens") => Way::Plain(Json(r#"{"label":"x","tenant":"TENANT"}"#)),
        (
            "get",
            "/api/v1/tenants"
            | "/api/v1/domains"
            | "/api/v1/events"
            | "/api/v1/certificates"
            | "/api/v1/orders"
            | "/api/v1/budget"
            | "/api/v1/edges"
            | "/api/v1/left-behind"
            | "/api/v1/recovery"
            | "/api/v1/reissues"
            | "/api/v1/tokens"
            | "/api/v1/explain"
            | "/api/v1/imports"
            | "/api/v1/portal-links"
            | "/api/v1/hand-off-links"
            | "/api/v1/webhooks"
            | "/api/v1/alerts",
        ) => Way::Plain(Nothing),
        ("post", "/api/v1/recovery/end") => Way::Plain(Json(r#"{"names_lost":0}"#)),
        ("post", "/api/v1/webhooks") => {
            Way::Plain(Json(r#"{"tenant":"TENANT","url":"https://hooks.evil.example/","kinds":["*"]}"#))
        }
        (_, path) if path.starts_with("/api/v1/webhooks/{id}") => Way::Ids(&["webhook"], Nothing),
        ("post", "/api/v1/imports") => Way::Plain(Csv("nothing,of,this\n")),
        ("get", path) if path.starts_with("/api/v1/imports/{id}") => Way::Ids(&["import"], Nothing),
        ("post", path) if path.starts_with("/api/v1/imports/{id}/") => Way::Ids(&["import"], Nothing),
        ("post", "/api/v1/portal-links") => Way::Plain(Json(r#"{"tenant":"TENANT"}"#)),
        ("post", "/api/v1/hand-off-links") => Way::Plain(Json(r#"{"domain":"DOMAIN"}"#)),
        ("delete", "/api/v1/portal-links/{id}") => Way::Ids(&["portal link"], Nothing),
        ("delete", "/api/v1/hand-off-links/{id}") => Way::Ids(&["hand-off link"], Nothing),
        ("delete", "/api/v1/tenants/{id}") => Way::Ids(&["tenant"], Nothing),
        ("get", "/api/v1/tenants/{id}/dangling") => Way::Ids(&["tenant"], Nothing),
        ("get", "/api/v1/tenants/{id}" | "/api/v1/tenants/{id}/contacts") => Way::Ids(&["tenant"], Nothing),
        ("patch", "/api/v1/tenants/{id}") => Way::Ids(&["tenant"], Json(r#"{"name":"Mine now"}"#)),
        ("post", "/api/v1/tenants/{id}/contacts") => Way::Ids(&["tenant"], Json(r#"{"email":"me@evil.example"}"#)),
        ("delete", "/api/v1/tenants/{id}/contacts/{contact}") => Way::Ids(&["tenant", "contact"], Nothing),
        ("get" | "delete", "/api/v1/domains/{id}") => Way::Ids(&["domain"], Nothing),
        ("patch", "/api/v1/domains/{id}") => Way::Ids(&["domain"], Json(r#"{"redirect_to":null}"#)),
        ("post", "/api/v1/domains/{id}/check" | "/api/v1/domains/{id}/undo-removal") => Way::Ids(&["domain"], Nothing),
        ("post", "/api/v1/domains/{id}/end-release") => Way::Ids(&["domain"], Json(r#"{"reason":"mine now"}"#)),
        (
            "get",
            "/api/v1/domains/{id}/attempts"
            | "/api/v1/domains/{id}/evidence"
            | "/api/v1/domains/{id}/records.zone"
            | "/api/v1/domains/{id}/apply-link",
        ) => Way::Ids(&["domain"], Nothing),
        ("get", "/api/v1/certificates/{id}") => Way::Ids(&["certificate"], Nothing),
        ("post", "/api/v1/reissues") => Way::Plain(Json(r#"{"before":"2040-01-15T08:00:00Z"}"#)),
        (_, path) if path.starts_with("/api/v1/reissues/{id}") => Way::Ids(&["reissue"], Nothing),
        ("get", "/api/v1/edges/{id}") => Way::Ids(&["edge"], Nothing),
        ("post", "/api/v1/edges/{id}/drain" | "/api/v1/edges/{id}/undrain") => Way::Ids(&["edge"], Nothing),
        ("get" | "delete", "/api/v1/tokens/{id}") => Way::Ids(&["token"], Nothing),
        (_, path) if path.starts_with("/enter/") || path.starts_with("/hand-off/") => Way::Secret,
        (_, "/operator/sign-in") => Way::Secret,
        ("get", "/operator/tenants/{id}" | "/operator/tenants/{id}/remove") => Way::Page(&["tenant"], Nothing),
        ("post", "/operator/tenants/{id}/remove") => Way::Page(&["tenant"], Form("csrf=00&slug=acme")),
        ("post", "/operator/domains/{id}/end-release") => Way::Page(&["domain"], Form("csrf=00&reason=mine")),
        ("post", "/operator/recovery/end") => Way::Page(&[], Form("csrf=00&names_lost=0")),
        ("get", "/operator/domains/{id}") => Way::Page(&["domain"], Nothing),
        ("get", path) if path.starts_with("/operator") => Way::Page(&[], Nothing),
        ("get", path) if path.starts_with("/domains/{id}") => Way::Page(&["domain"], Nothing),
        ("post", "/domains/{id}/hand-off/revoke") => Way::Page(&["domain"], Form("csrf=00&link=lnk_0")),
        ("post", path) if path.starts_with("/domains/{id}") => Way::Page(&["domain"], Form("csrf=00")),
        ("get", path) if path.starts_with("/imports/{id}") => Way::Page(&["import"], Nothing),
        ("post", "/imports/{id}/check") => Way::Page(&["import"], Form("csrf=00")),
        ("post", "/imports/{id}/turn") => Way::Page(&["import"], Form("csrf=00")),
        (_, "/imports") => Way::Page(&[], Nothing),
        (_, "/domains" | "/domains/live" | "/domains/add" | "/sign-out") => Way::Page(&[], Nothing),
        (method, path) => panic!("declare in this test how {method} {path} is tried"),
    }
}

/// A world with two tenants, of which one has one of everything.
struct World {
    web: Web,
    acme_token: String,
    other_token: String,
    /// Kind → what acme has of it.
    theirs: BTreeMap<&'static str, String>,
}

impl World {
    async fn new(seed: u64) -> World {
        let web = Web::new(seed).await;
        let (acme, acme_token) = web.tenant("acme").await;
        let (_, other_token) = web.tenant("other").await;
        let id = web.rig.claim(&acme, "support.acme.test").await;
        web.rig.publish(&id, "support.acme.test").await;
        for _ in 0..400 {
            web.rig.turn().await;
            if web.rig.domain_text(&id, "claim").await.as_deref() == Some("live") {
                break;
            }
        }
        web.rig.hand.advance(Duration::from_secs(60));
        let body = json!({ "email": "dns@acme.test" });
        let contact = web.api(&acme_token, "POST", "/api/v1/tenants/acme/contacts", Some(body)).await;
        assert_eq!(contact.status, 201, "{}", contact.body);
        let made = web.api(&acme_token, "POST", "/api/v1/tokens", Some(json!({ "label": "acme's own" }))).await;
        assert_eq!(made.status, 201, "{}", made.body);
        let link = async |path: &str| {
            let made = web.api(&acme_token, "POST", path, Some(json!({ "domain": id }))).await;
            assert_eq!(made.status, 201, "{}", made.body);
            made.json()["id"].as_str().unwrap().to_owned()
        };
        let (portal_link, hand_off_link) = (link("/api/v1/portal-links").await, link("/api/v1/hand-off-links").await);
        let body = json!({ "url": "https://hooks.acme.test/in", "kinds": ["*"] });
        let webhook = web.api(&acme_token, "POST", "/api/v1/webhooks", Some(body)).await;
        assert_eq!(webhook.status, 201, "{}", webhook.body);
        let names = "hostname\nsupport.acme.test\nimported.acme.test\n";
        let import = Request::builder().method("POST").uri("/api/v1/imports").header("content-type", "text/csv");
        let import = import.header("authorization", format!("Bearer {acme_token}")).body(Body::from(names)).unwrap();
        let import = web.send(import).await;
        assert_eq!(import.status, 201, "{}", import.body);
        while nameplate::app::bulk::round(&web.rig.app).await.unwrap().is_some() {}
        let certificate = web.rig.domain_text(&id, "certificate_id").await.unwrap();
        let reissue = serde_json::json!({ "before": "2000-01-15T08:00:00Z" });
        let reissue = web.api(&web.operator, "POST", "/api/v1/reissues", Some(reissue)).await;
        assert_eq!(reissue.status, 201, "{}", reissue.body);
        let text = |answer: &Answer| answer.json()["id"].as_str().unwrap().to_owned();
        let theirs = BTreeMap::from([
            ("tenant", acme.to_string()),
            ("domain", id.to_string()),
            ("contact", text(&contact)),
            ("token", text(&made)),
            ("certificate", certificate),
            ("edge", web.rig.edge.to_string()),
            ("reissue", text(&reissue)),
            ("import", text(&import)),
            ("portal link", portal_link),
            ("hand-off link", hand_off_link),
            ("webhook", text(&webhook)),
        ]);
        World { web, acme_token, other_token, theirs }
    }

    /// Every row of every table, but for the queue's.
    async fn rows(&self) -> Vec<String> {
        let pool = self.web.rig.app.store.sqlite_pool().unwrap();
        let tables: Vec<String> =
            sqlx::query_scalar("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
                .fetch_all(pool)
                .await
                .unwrap();
        let mut rows = Vec::new();
        for table in tables.iter().filter(|table| !table.starts_with('_')) {
            let columns = format!("SELECT 'quote(\"' || name || '\")' FROM pragma_table_info('{table}')");
            let columns: Vec<String> = sqlx::query_scalar(AssertSqlSafe(columns)).fetch_all(pool).await.unwrap();
            let all = format!("SELECT {} FROM \"{table}\"", columns.join(" || ' ' || "));
            let found: Vec<String> = sqlx::query_scalar(AssertSqlSafe(all)).fetch_all(pool).await.unwrap();
            rows.extend(found.into_iter().map(|row| format!("{table}: {row}")));
        }
        rows.sort();
        rows
    }

    async fn send(&self, route: &Route, path: &str, sent: &Sent, tenant: &str, token: Option<&str>) -> Answer {
        let mut request =
            Request::builder().method(route.method.to_uppercase().as_str()).uri(path).header("origin", PUBLIC_URL);
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let body = match sent {
            Sent::Nothing => Body::empty(),
            Sent::Json(text) => {
                request = request.header("content-type", "application/json");
                Body::from(text.replace("TENANT", tenant).replace("DOMAIN", tenant))
            }
            Sent::Csv(text) => {
                request = request.header("content-type", "text/csv");
                Body::from(*text)
            }
            Sent::Form(text) => {
                request = request.header("content-type", "application/x-www-form-urlencoded");
                Body::from(*text)
            }
        };
        self.web.send(request.body(body).unwrap()).await
    }
}

/// An id of that kind that nothing has.
fn unknown(kind: &str) -> String {
    let prefix = match kind {
        "tenant" => "ten_",
        "domain" => "dom_",
        "contact" => "con_",
        "token" => "tok_",
        "certificate" => "crt_",
        "edge" => "edg_",
        "reissue" => "rei_",
        "import" => "imp_",
        "webhook" => "whk_",
        "portal link" | "hand-off link" => "lnk_",
        other => panic!("no id of kind {other}"),
    };
    format!("{prefix}{}", "0".repeat(32))
}

/// The path with its ids, percent-encoded by whoever gives them.
fn filled(path: &str, ids: &[String]) -> String {
    let mut ids = ids.iter();
    let part = |part: &str| if part.starts_with('{') { ids.next().unwrap().clone() } else { part.to_owned() };
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}

/// What an answer tells, but for the ids that were asked for and what differs between any two answers.
fn told(answer: &Answer, ids: &[String]) -> (u16, Vec<String>, String) {
    let mut headers: Vec<String> = answer
        .headers
        .iter()
        .filter(|(name, _)| !matches!(name.as_str(), "x-request-id" | "ratelimit" | "content-length"))
        .map(|(name, value)| format!("{name}: {value:?}"))
        .collect();
    headers.sort();
    let request = answer.header("x-request-id");
    let body = ids.iter().fold(answer.body.replace(request, "REQUEST"), |body, id| body.replace(id.as_str(), "ID"));
    (answer.status.as_u16(), headers, body)
}

/// Ids that are none, as they stand in a URL.
fn malformed() -> Vec<String> {
    let mut all: Vec<String> =
        ["x", "%00", "..%2f..", "%F0%9F%A6%80", "%E2%80%AE", "dom_XYZ", "'%20OR%201=1--", "%3Cscript%3E", "0"]
            .into_iter()
            .map(str::to_owned)
            .collect();
    all.push("a".repeat(10_000));
    all
}

#[tokio::test]
async fn anothers_answers_as_the_unknown_on_every_route_and_nothing_changes() {
    let world = World::new(51).await;
    let before = world.rows().await;
    assert!(before.len() > 20, "{before:?}");
    let mut walked = 0;
    for route in ROUTES {
        let Way::Ids(kinds, sent) = way(route) else { continue };
        assert_eq!(kinds.len(), route.path.matches('{').count(), "{}", route.path);
        let absent: Vec<String> = kinds.iter().map(|kind| unknown(kind)).collect();
        let theirs: Vec<String> = kinds.iter().map(|kind| world.theirs[kind].clone()).collect();
        let token = Some(world.other_token.as_str());
        let path = filled(route.path, &absent);
        let reference = told(&world.send(route, &path, &sent, "other", token).await, &absent);
        assert!(matches!(reference.0, 403 | 404), "{} {path}: {reference:?}", route.method);
        let answer = world.send(route, &filled(route.path, &theirs), &sent, "other", token).await;
        assert_eq!(told(&answer, &theirs), reference, "{} {}", route.method, route.path);
        for id in malformed() {
            let ids = vec![id; kinds.len()];
            let answer = world.send(route, &filled(route.path, &ids), &sent, "other", token).await;
            assert_eq!(answer.status.as_u16(), reference.0, "{} {}: {}", route.method, ids[0], answer.body);
            let operator = world.send(route, &filled(route.path, &ids), &sent, "other", Some(&world.web.operator)).await;
            assert!(operator.status.is_client_error(), "{} {}: {}", route.method, ids[0], operator.body);
        }
        walked += 1;
    }
    assert!(walked >= 19, "{walked}");
    assert_eq!(world.rows().await, before, "something was changed");
}

/// The pages are tried in a session of the other tenant. Sessions are left out of the comparison: each request is noted there.
#[tokio::test]
async fn anothers_page_is_no_page() {
    let world = World::new(56).await;
    let other = world.web.rig.app.store.query(sql("SELECT id FROM tenants WHERE slug = 'other'")).await.unwrap();
    let cookie = world.web.admin(&other[0].parse("id").unwrap()).await;
    let rows =
        async || -> Vec<String> { world.rows().await.into_iter().filter(|row| !row.starts_with("sessions: ")).collect() };
    let before = rows().await;
    let mut walked = 0;
    for route in ROUTES {
        let Way::Page(kinds, sent) = way(route) else { continue };
        if kinds.is_empty() {
            continue;
        }
        let mut answers = Vec::new();
        for ids in
            [kinds.iter().map(|k| world.theirs[k].clone()).collect::<Vec<_>>(), kinds.iter().map(|k| unknown(k)).collect()]
        {
            let path = filled(route.path, &ids);
            let answer = match &sent {
                Sent::Form(form) => world.web.post(&cookie, &path, form).await,
                _ => world.web.page(&cookie, &path).await,
            };
            assert!(matches!(answer.status.as_u16(), 303 | 403 | 404), "{} {path}: {}", route.method, answer.status);
            assert!(!answer.body.contains("support.acme.test"), "{} {path}: {}", route.method, answer.body);
            answers.push((
                answer.status,
                answer.header("location").replace(&ids[0], "ID"),
                answer.body.replace(&ids[0], "ID"),
            ));
        }
        assert_eq!(answers[0], answers[1], "{} {}", route.method, route.path);
        walked += 1;
    }
    assert!(walked >= 9, "{walked}");
    assert_eq!(rows().await, before, "something was changed");
}

#[tokio::test]
async fn mixed_ids_of_two_tenants_open_nothing() {
    let world = World::new(52).await;
    let before = world.rows().await;
    let route = ROUTES.iter().find(|route| route.path.contains("{contact}")).unwrap();
    let ids = ["other".to_owned(), world.theirs["contact"].clone()];
    let answer = world.send(route, &filled(route.path, &ids), &Sent::Nothing, "", Some(&world.other_token)).await;
    assert_eq!(answer.problem(), (404, "contact_not_found".to_owned()));
    assert_eq!(world.rows().await, before);
}

#[tokio::test]
async fn the_owner_sees_what_others_do_not() {
    let world = World::new(53).await;
    for route in ROUTES.iter().filter(|route| route.method == "get" && route.path.starts_with("/api/v1")) {
        let ids: Vec<String> = match way(route) {
            Way::Ids(kinds, _) => kinds.iter().map(|kind| world.theirs[kind].clone()).collect(),
            Way::Plain(_) => vec![],
            Way::Open | Way::Page(..) | Way::Secret => continue,
        };
        // These answer for a name, for a tenant that has left, or for a DNS provider's offer.
        if ["/explain", "/dangling", "/apply-link"].iter().any(|end| route.path.ends_with(end)) {
            continue;
        }
        let path = filled(route.path, &ids);
        let operator = world.send(route, &path, &Sent::Nothing, "", Some(&world.web.operator)).await;
        assert_eq!(operator.status, 200, "{path}: {}", operator.body);
        let own = world.send(route, &path, &Sent::Nothing, "", Some(&world.acme_token)).await;
        assert!(matches!(own.status.as_u16(), 200 | 403), "{path}: {}", own.body);
        let operators_own =
            ["/edges", "/orders", "/budget", "/left-behind", "/recovery", "/reissues"].iter().any(|own| path.contains(own));
        assert_eq!(own.status == 403, operators_own, "{path}");
    }
}

#[tokio::test]
async fn lists_filters_and_bodies_tell_nothing_of_others() {
    let world = World::new(54).await;
    let rows = world.web.rig.app.store.query(sql("SELECT id FROM events ORDER BY id")).await.unwrap();
    for (row, n) in rows.iter().zip(1_i64..) {
        let stmt = sql("UPDATE events SET position = $2 WHERE id = $1").bind(row.text("id").unwrap()).bind(n);
        world.web.rig.app.store.execute(stmt).await.unwrap();
    }
    let before = world.rows().await;
    let document: Value = serde_json::from_str(nameplate::web::openapi_document()).unwrap();
    let digest = sql("SELECT digest FROM imports WHERE id = $1").bind(world.theirs["import"].as_str());
    let theirs_digest = world.web.rig.app.store.query(digest).await.unwrap()[0].text("digest").unwrap();
    let token = Some(world.other_token.as_str());
    let (mut lists, mut filters) = (0, 0);
    for route in ROUTES {
        let Way::Plain(sent) = way(route) else { continue };
        if route.method == "get" {
            let all = world.send(route, route.path, &sent, "", token).await;
            for secret in world.theirs.values().map(String::as_str).chain(["support.acme.test", "dns@acme", "acme's own"]) {
                assert!(!all.body.contains(secret), "{} tells {secret}: {}", route.path, all.body);
            }
            lists += 1;
        }
        let described = &document["paths"][route.path][route.method]["parameters"];
        for parameter in described.as_array().into_iter().flatten().filter(|p| p["in"] == "query") {
            let name = parameter["name"].as_str().unwrap();
            let (theirs, absent) = match name {
                "digest" => (theirs_digest.clone(), "0".repeat(64)),
                "tenant" => ("acme".to_owned(), "nobody".to_owned()),
                "domain" => (world.theirs["domain"].clone(), unknown("domain")),
                "hostname" => ("support.acme.test".to_owned(), "unknown.acme.test".to_owned()),
                "cursor" | "limit" | "after" | "wait" | "claim" | "expires_before" | "state" | "dry_run" | "name"
                | "create_tenants" | "resolved" => continue,
                other => panic!("declare in this test how the parameter {other} of {} is tried", route.path),
            };
            let mut answers = Vec::new();
            for value in [theirs, absent] {
                let answer = world.send(route, &format!("{}?{name}={value}", route.path), &sent, "", token).await;
                answers.push(told(&answer, &[value]));
            }
            assert_eq!(answers[0], answers[1], "{} {name}", route.path);
            filters += 1;
        }
        for (word, theirs, absent) in [
            ("TENANT", "acme".to_owned(), "nobody".to_owned()),
            ("DOMAIN", world.theirs["domain"].clone(), unknown("domain")),
        ] {
            if matches!(&sent, Sent::Json(text) if text.contains(word)) {
                let answered = told(&world.send(route, route.path, &sent, &theirs, token).await, &[theirs]);
                let reference = told(&world.send(route, route.path, &sent, &absent, token).await, &[absent]);
                assert_eq!((answered.0, &answered), (422, &reference), "{}", route.path);
            }
        }
    }
    assert!(lists >= 7 && filters >= 6, "{lists} {filters}");
    assert_eq!(world.rows().await, before, "something was changed");
}

#[tokio::test]
async fn without_a_valid_token_every_guarded_route_answers_401() {
    let world = World::new(55).await;
    let (store, env) = (&world.web.rig.app.store, &world.web.rig.env);
    let ends = Some(env.now() + Duration::from_secs(60));
    let minted = tokens::mint(store, env, &Principal::Operator, "short", ends).await.unwrap();
    let ended = minted.text.expose_str().unwrap().to_owned();
    assert_eq!(world.web.api(&ended, "GET", "/api/v1/domains", None).await.status, 200);
    let minted = tokens::mint(store, env, &Principal::Operator, "revoked", None).await.unwrap();
    let revoked = minted.text.expose_str().unwrap().to_owned();
    tokens::revoke(store, env, &minted.id).await.unwrap();
    world.web.rig.hand.advance(Duration::from_secs(61));
    let mut changed = world.acme_token.clone();
    changed.pop();
    changed.push(if world.acme_token.ends_with('A') { 'B' } else { 'A' });
    // The same characters under another scope's prefix are another token.
    let promoted = world.acme_token.replacen("npt_", "npo_", 1);
    let before = world.rows().await;
    for route in ROUTES {
        let (kinds, sent): (&[&str], Sent) = match way(route) {
            Way::Page(..) => {
                assert!(route.guarded, "{} is said to be open", route.path);
                continue;
            }
            Way::Open | Way::Secret => {
                assert!(!route.guarded, "{} takes no token, but is said to be guarded", route.path);
                continue;
            }
            Way::Ids(kinds, sent) => (kinds, sent),
            Way::Plain(sent) => (&[], sent),
        };
        assert!(route.guarded, "{} is said to be open", route.path);
        let ids: Vec<String> = kinds.iter().map(|kind| world.theirs[kind].clone()).collect();
        let path = filled(route.path, &ids);
        for token in [None, Some(""), Some("npo_"), Some(&*changed), Some(&*promoted), Some(&*revoked), Some(&*ended)] {
            let answer = world.send(route, &path, &sent, "acme", token).await;
            assert_eq!(answer.problem(), (401, "unauthorized".to_owned()), "{} {path}", route.method);
            assert!(!answer.header("www-authenticate").is_empty());
        }
    }
    assert_eq!(world.rows().await, before, "something was changed");
    assert_eq!(world.web.api("", "GET", "/healthz", None).await.status, 200);
    let start = world.web.api("", "GET", "/", None).await;
    assert!(start.status == 200 && start.body.contains("Nameplate is running"), "{}", start.body);
}
