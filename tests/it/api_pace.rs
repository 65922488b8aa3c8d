//! What holds for every request of the API: names, tags, pace, methods, bodies of every kind.

use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use nameplate::web::ROUTES;
use serde_json::{Value, json};

use crate::support::rig::Rig;
use crate::support::stores::{Kind, TestStore};
use crate::support::web::{Answer, Web};

async fn get(web: &Web, token: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = Request::get(path).header("authorization", format!("Bearer {token}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    web.send(request.body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn requests_have_names_that_answers_and_problems_carry() {
    let web = Web::new(81).await;
    let given = get(&web, &web.operator, "/api/v1/tenants", &[("x-request-id", "ci-run/42")]).await;
    assert_eq!(given.header("x-request-id"), "ci-run/42");
    let problem = get(&web, &web.operator, "/api/v1/tenants/nobody", &[("x-request-id", "ci-run/43")]).await;
    assert_eq!(problem.json()["request_id"], "ci-run/43");
    for insane in ["<b>", "a b", &"x".repeat(200)] {
        let minted = get(&web, &web.operator, "/api/v1/tenants/nobody", &[("x-request-id", insane)]).await;
        assert!(minted.header("x-request-id").starts_with("req_"));
        assert_eq!(minted.json()["request_id"], minted.header("x-request-id"));
    }
}

#[tokio::test]
async fn an_answer_that_is_known_is_not_sent_again() {
    let web = Web::new(82).await;
    let (acme, token) = web.tenant("acme").await;
    let id = web.rig.claim(&acme, "a.acme.test").await;
    for path in [
        "/api/v1/tenants".to_owned(),
        "/api/v1/tenants/acme".into(),
        format!("/api/v1/domains/{id}"),
        "/api/v1/events".into(),
    ] {
        let first = get(&web, &token, &path, &[]).await;
        let tag = first.header("etag").to_owned();
        assert!(tag.starts_with('"') && first.header("cache-control") == "private, no-cache", "{path}: {:?}", first.headers);
        for known in [tag.clone(), "*".into(), format!("W/{tag}"), format!("\"other\", {tag}")] {
            let again = get(&web, &token, &path, &[("if-none-match", &known)]).await;
            assert_eq!(
                (again.status.as_u16(), again.body.as_str(), again.header("etag")),
                (304, "", tag.as_str()),
                "{path} {known}"
            );
        }
        assert_eq!(get(&web, &token, &path, &[("if-none-match", "\"other\"")]).await.status, 200);
        let head = Request::head(&path).header("authorization", format!("Bearer {token}"));
        let head = web.send(head.body(Body::empty()).unwrap()).await;
        assert_eq!((head.status.as_u16(), head.body.as_str(), head.header("etag")), (200, "", tag.as_str()), "{path}");
        assert_eq!(head.header("content-length"), first.body.len().to_string(), "{path}");
    }
    // What changes has another tag.
    let path = format!("/api/v1/domains/{id}");
    let before = get(&web, &token, &path, &[]).await.header("etag").to_owned();
    web.api(&token, "DELETE", &path, None).await;
    let after = get(&web, &token, &path, &[("if-none-match", &before)]).await;
    assert_eq!(after.status, 200);
    assert_ne!(after.header("etag"), before);
}

async fn change(web: &Web, token: &str, method: &str, path: &str, tag: &str, body: Option<&Value>) -> Answer {
    let mut request = Request::builder().method(method).uri(path).header("authorization", format!("Bearer {token}"));
    if !tag.is_empty() {
        request = request.header("if-match", tag);
    }
    let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
    web.send(request.header("content-type", "application/json").body(body).unwrap()).await
}

#[tokio::test]
async fn a_change_that_counts_on_an_older_version_is_refused_and_changes_nothing() {
    let web = Web::new(83).await;
    let (acme, token) = web.tenant("acme").await;
    let tag = get(&web, &web.operator, "/api/v1/tenants/acme", &[]).await.header("etag").to_owned();
    let rename = |name: &str| json!({ "name": name });
    let first = change(&web, &web.operator, "PATCH", "/api/v1/tenants/acme", &tag, Some(&rename("One"))).await;
    assert_eq!((first.status.as_u16(), &first.json()["name"], &first.json()["version"]), (200, &json!("One"), &json!(2)));
    let second = change(&web, &web.operator, "PATCH", "/api/v1/tenants/acme", &tag, Some(&rename("Two"))).await;
    assert_eq!(second.problem(), (412, "changed_meanwhile".to_owned()));
    let now = get(&web, &web.operator, "/api/v1/tenants/acme", &[]).await;
    assert_eq!((&now.json()["name"], now.header("etag")), (&json!("One"), first.header("etag")));
    for strange in ["\"x\"", &format!("W/{}", first.header("etag")), "\"v99.0000\"", "garbage"] {
        let refused = change(&web, &web.operator, "PATCH", "/api/v1/tenants/acme", strange, Some(&rename("Three"))).await;
        assert_eq!(refused.status, 412, "{strange}");
        let refused = change(&web, &web.operator, "PATCH", "/api/v1/tenants/acme", strange, Some(&rename("One"))).await;
        assert_eq!(refused.status, 412, "{strange}: also where nothing would change");
    }
    assert_eq!(change(&web, &web.operator, "PATCH", "/api/v1/tenants/acme", "*", Some(&rename("Four"))).await.status, 200);

    let id = web.rig.claim(&acme, "a.acme.test").await;
    let path = format!("/api/v1/domains/{id}");
    web.rig.hand.advance(Duration::from_secs(10));
    let tag = get(&web, &token, &path, &[]).await.header("etag").to_owned();
    assert_eq!(change(&web, &token, "POST", &format!("{path}/check"), "\"v0.00\"", None).await.status, 412);
    assert_eq!(
        change(&web, &token, "POST", &format!("{path}/check"), &tag, None).await.status,
        202,
        "the one before did not count"
    );
    assert_eq!(change(&web, &token, "DELETE", &path, "\"v0.00\"", None).await.problem(), (412, "changed_meanwhile".into()));
    assert_eq!(web.rig.domain_text(&id, "claim").await.as_deref(), Some("awaiting_dns"));
    let gone = change(&web, &token, "DELETE", &path, &tag, None).await;
    assert_eq!((gone.status.as_u16(), &gone.json()["claim"]), (200, &json!("withdrawn")));

    // There is no way back from off-boarding: least of all is it done to another version than was seen.
    let path = "/api/v1/tenants/acme";
    let stale = change(&web, &web.operator, "DELETE", path, "\"v1.00\"", None).await;
    assert_eq!(stale.problem(), (412, "changed_meanwhile".to_owned()));
    let slip = web.api(&web.operator, "DELETE", &format!("{path}?dry_run=1"), None).await;
    assert_eq!(slip.problem(), (400, "bad_query".to_owned()));
    let now = get(&web, &web.operator, path, &[]).await;
    assert_eq!(now.json()["status"], json!("active"));
    let slug_stays =
        web.rig.app.store.query(nameplate::store::sql("SELECT 1 FROM slugs WHERE retired_at IS NOT NULL")).await;
    assert!(slug_stays.unwrap().is_empty());
    for _ in 0..2 {
        // Sent again, it answers how far it is.
        assert_eq!(change(&web, &web.operator, "DELETE", path, now.header("etag"), None).await.status, 202);
    }
}

/// Of many who change by the same version, one does.
#[tokio::test(flavor = "multi_thread")]
async fn of_many_changes_by_one_version_one_is_made() {
    for kind in [Kind::SqliteFile, Kind::Postgres] {
        let test = TestStore::blank(kind).await;
        let web = Web::on(Rig::on(84, &test.url).await, "").await;
        web.tenant("acme").await;
        let tag = get(&web, &web.operator, "/api/v1/tenants/acme", &[]).await.header("etag").to_owned();
        let sending: Vec<_> = (0..10)
            .map(|n| {
                let request = Request::patch("/api/v1/tenants/acme")
                    .header("authorization", format!("Bearer {}", web.operator))
                    .header("content-type", "application/json")
                    .header("if-match", &tag)
                    .body(Body::from(json!({ "name": format!("Acme {n}") }).to_string()))
                    .unwrap();
                let router = web.router.clone();
                tokio::spawn(async move { Web::send_to(&router, request).await.status.as_u16() })
            })
            .collect();
        let mut statuses = Vec::new();
        for sent in sending {
            statuses.push(sent.await.unwrap());
        }
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 412, 412, 412, 412, 412, 412, 412, 412, 412], "{kind:?}");
        let version = &get(&web, &web.operator, "/api/v1/tenants/acme", &[]).await.json()["version"];
        assert_eq!(version, 2, "{kind:?}");
        web.rig.app.store.close().await;
        test.remove().await;
    }
}

#[tokio::test]
async fn a_token_that_asks_too_often_waits_and_no_other_does() {
    let web = Web::paced(85, 5, 3).await;
    let (_, token) = web.tenant("acme").await;
    for left in (0..5).rev() {
        let answer = get(&web, &token, "/api/v1/domains", &[]).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("ratelimit-policy"), "\"token\";q=5;w=60");
        assert!(answer.header("ratelimit").starts_with(&format!("\"token\";r={left};t=")), "{}", answer.header("ratelimit"));
    }
    let refused = get(&web, &token, "/api/v1/domains", &[]).await;
    assert_eq!(refused.problem(), (429, "too_many_requests".to_owned()));
    assert_eq!(refused.header("retry-after"), "12");
    assert_eq!(get(&web, &web.operator, "/api/v1/domains", &[]).await.status, 200);
    web.rig.hand.advance(Duration::from_secs(12));
    assert_eq!(get(&web, &token, "/api/v1/domains", &[]).await.status, 200);
    assert_eq!(get(&web, &token, "/api/v1/domains", &[]).await.status, 429);
    // Guesses are counted by address, and shut nobody out who has a token.
    for _ in 0..3 {
        assert_eq!(get(&web, "npo_guess", "/api/v1/domains", &[]).await.status, 401);
    }
    let refused = get(&web, "npo_guess", "/api/v1/domains", &[]).await;
    assert_eq!(refused.problem(), (429, "too_many_requests".to_owned()));
    assert_eq!(refused.header("ratelimit-policy"), "\"failures\";q=3;w=60");
    assert_eq!(get(&web, &web.operator, "/api/v1/domains", &[]).await.status, 200);
}

#[tokio::test]
async fn every_route_of_the_api_says_which_methods_it_takes() {
    let web = Web::new(86).await;
    for route in ROUTES.iter().filter(|route| route.path.starts_with("/api/")) {
        let path = route.path.replace("{id}", "x").replace("{contact}", "y");
        let takes: Vec<&str> = ROUTES.iter().filter(|r| r.path == route.path).map(|r| r.method).collect();
        for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND"] {
            let known = takes.contains(&method.to_lowercase().as_str()) || method == "HEAD" && takes.contains(&"get");
            if known {
                continue;
            }
            let answer = web.api(&web.operator, method, &path, None).await;
            assert_eq!(answer.status, 405, "{method} {path}");
            for taken in &takes {
                assert!(answer.header("allow").contains(&taken.to_uppercase()), "{method} {path}: {:?}", answer.headers);
            }
        }
        let options = web.api("", "OPTIONS", &path, None).await;
        assert_eq!((options.status.as_u16(), options.body.as_str()), (204, ""), "{path}");
        assert!(options.header("allow").contains(&takes[0].to_uppercase()), "{path}");
    }
}

/// A body of which no end ever comes.
fn endless() -> Body {
    Body::from_stream(futures::stream::pending::<Result<Vec<u8>, std::io::Error>>())
}

fn broken() -> Body {
    let pieces = vec![Ok(b"{\"slug\":".to_vec()), Err(std::io::Error::other("cut"))];
    Body::from_stream(futures::stream::iter(pieces))
}

#[tokio::test]
async fn bodies_that_are_strange_get_clear_answers() {
    let web = Web::new(87).await;
    let post = |body: Body| {
        Request::post("/api/v1/tenants")
            .header("authorization", format!("Bearer {}", web.operator))
            .header("content-type", "application/json; charset=utf-8")
            .body(body)
            .unwrap()
    };
    let deep = format!("{{\"slug\":{}1{}}}", "[".repeat(20_000), "]".repeat(20_000));
    let nested = format!("{}{}", "{\"slug\":".repeat(5_000), "}".repeat(5_000));
    for (body, expected) in [
        (Body::empty(), (400, "bad_json")),
        (Body::from(deep), (422, "wrong_fields")),
        (Body::from(nested), (422, "wrong_fields")),
        (Body::from(format!("{{\"x\":{}1{}}}", "[".repeat(20_000), "]".repeat(20_000))), (422, "wrong_fields")),
        (Body::from("{\"slug\":\"a\",\"slug\":\"b\"}"), (422, "wrong_fields")),
        (Body::from("{\"slug\":1e999999}"), (400, "bad_json")),
        (Body::from(format!("{{\"slug\":{}}}", "9".repeat(5_000))), (400, "bad_json")),
        (Body::from("{\"slug\":\"\\ud800\"}"), (400, "bad_json")),
        (Body::from(&b"{\"slug\":\"\xff\"}"[..]), (400, "bad_json")),
        (Body::from("{\"slug\":\"acme\"} trailing"), (400, "bad_json")),
        (Body::from("null"), (422, "wrong_fields")),
        (Body::from(vec![b' '; 70_000]), (413, "body_too_large")),
        (broken(), (400, "body_cut_off")),
    ] {
        let answer = web.send(post(body)).await;
        let (status, code) = answer.problem();
        // Depth is refused by whichever of the two rules meets it first.
        let depth = expected.1 == "wrong_fields" && (status, code.as_str()) == (400, "bad_json");
        assert!(depth || (status, code.as_str()) == expected, "{expected:?}: {}", answer.body);
    }
    let slow = async { web.send(post(endless())).await };
    let clock = async {
        tokio::task::yield_now().await;
        loop {
            web.rig.hand.advance(Duration::from_secs(1));
            tokio::task::yield_now().await;
        }
    };
    let answer = tokio::select! {
        answer = slow => answer,
        () = clock => unreachable!("the clock never stops"),
    };
    assert_eq!(answer.problem(), (408, "body_too_slow".to_owned()));
    assert_eq!(web.rig.count(nameplate::store::sql("SELECT COUNT(*) AS n FROM tenants")).await, 0);
}

#[tokio::test]
async fn hostile_texts_in_every_field_are_refused_by_field_or_kept_as_they_are() {
    for kind in [Kind::SqliteMemory, Kind::Postgres] {
        let test = TestStore::blank(kind).await;
        let web = Web::on(Rig::on(88, &test.url).await, "").await;
        web.tenant("acme").await;
        hostile(&web).await;
        web.rig.app.store.close().await;
        test.remove().await;
    }
}

async fn hostile(web: &Web) {
    let hostile: Vec<String> = vec![
        "\0".into(),
        "a\0b".into(),
        "x".repeat(10_000),
        "<script>alert(1)</script>".into(),
        "\u{202e}evil".into(),
        "\u{200b}".into(),
        "'; DROP TABLE tenants; --".into(),
        "\r\nX-Header: 1".into(),
        "\u{1f980}".into(),
        " ".into(),
        String::new(),
    ];
    for (method, path, whole, field) in [
        ("POST", "/api/v1/tenants", json!({ "slug": "S" }), "slug"),
        ("POST", "/api/v1/tenants", json!({ "slug": "SLUG" }), "name"),
        ("PATCH", "/api/v1/tenants/acme", json!({}), "name"),
        ("PATCH", "/api/v1/tenants/acme", json!({}), "tier"),
        ("POST", "/api/v1/tenants/acme/contacts", json!({}), "email"),
        ("POST", "/api/v1/tenants/acme/contacts", json!({ "email": "a@acme.test" }), "kinds"),
        ("POST", "/api/v1/domains", json!({ "tenant": "acme" }), "hostname"),
        ("POST", "/api/v1/domains", json!({ "hostname": "a.acme.test" }), "tenant"),
        ("POST", "/api/v1/tokens", json!({ "tenant": "acme" }), "label"),
        ("POST", "/api/v1/tokens", json!({ "label": "l" }), "tenant"),
    ] {
        for (n, text) in hostile.iter().enumerate() {
            let mut body = whole.clone();
            if body["slug"] == "SLUG" {
                body["slug"] = json!(format!("t{n}"));
            }
            body[field] = if field == "kinds" { json!([text]) } else { json!(text) };
            let answer = web.api(&web.operator, method, path, Some(body)).await;
            let shown =
                || format!("{method} {path} {field}={:?}: {}", &text.chars().take(20).collect::<String>(), answer.body);
            match answer.status.as_u16() {
                200 | 201 => assert_eq!(answer.json()[field], text.trim(), "{}", shown()),
                422 => {
                    let (_, code) = answer.problem();
                    if code != "wrong_fields" {
                        assert_eq!(answer.json()["errors"][0]["field"], format!("/{field}"), "{}", shown());
                    }
                }
                _ => panic!("{}", shown()),
            }
            assert!(answer.body.len() < 30_000, "{}", answer.body.len());
        }
    }
    for path in
        ["tenants/%00", "tenants/%00/contacts", "edges/%00", "edges/a%0Ab", "tokens/%00", "certificates/%00", "domains/%00"]
    {
        let answer = web.api(&web.operator, "GET", &format!("/api/v1/{path}"), None).await;
        assert_eq!(answer.status, 404, "{path}: {}", answer.body);
    }
    for path in [
        "/api/v1/domains?hostname=%00",
        "/api/v1/domains?tenant=%00",
        "/api/v1/domains?claim=%00",
        "/api/v1/domains?cursor=%00",
        "/api/v1/domains?cursor=AA",
        "/api/v1/events?after=-1",
        "/api/v1/events?after=99999999999999999999",
        "/api/v1/events?wait=26",
        "/api/v1/events?domain=%00",
        "/api/v1/certificates?expires_before=tomorrow",
        "/api/v1/certificates?cursor=MTIzIGNydA",
        "/api/v1/certificates?domain=dom_x",
        "/api/v1/tokens?tenant=%E2%80%AE",
        "/api/v1/edges?limit=0",
        "/api/v1/edges?limit=1&limit=2",
        "/api/v1/tenants/acme?colour=red",
    ] {
        let answer = web.api(&web.operator, "GET", path, None).await;
        let (status, _) = answer.problem();
        assert!(matches!(status, 400 | 422), "{path}: {}", answer.body);
    }
}
