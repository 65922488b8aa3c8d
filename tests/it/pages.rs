//! The page of a domain: signing in, its two forms, and what keeps others from sending them.

use axum::body::Body;
use serde_json::json;

use crate::support::web::{Answer, PUBLIC_URL, Web};

fn csrf_of(page: &Answer) -> String {
    let after = page.body.split("name=\"csrf\" value=\"").nth(1).expect("a form token");
    after.split('"').next().unwrap().to_owned()
}

#[tokio::test]
async fn the_page_shows_what_to_publish_and_is_hardened() {
    let web = Web::new(21).await;
    let (tenant, token) = web.tenant("acme").await;
    let id = web.rig.claim(&tenant, "support.acme.test").await;
    let value = web.rig.value(&id).await;
    for reader in [&token, &web.operator] {
        let page = web.send(web.browser(reader, "GET", &format!("/domains/{id}")).body(Body::empty()).unwrap()).await;
        assert_eq!(page.status, 200, "{}", page.body);
        assert!(page.header("content-type").starts_with("text/html"));
        assert!(page.body.contains(&value) && page.body.contains("_nameplate-challenge.support.acme.test. 300 IN TXT"));
        assert!(page.body.contains("<title>support.acme.test: Waiting for DNS"));
        let policy = page.header("content-security-policy");
        assert!(
            policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe")
        );
        assert_eq!((page.header("cache-control"), page.header("x-content-type-options")), ("no-store", "nosniff"));
        assert!(!page.body.contains("<script") && !page.body.contains("style=\""));
        assert!(!page.body.contains(reader.as_str()));
    }
    let style = web.api("", "GET", "/assets/style.css", None).await;
    assert!(style.header("content-type").starts_with("text/css"));
}

#[tokio::test]
async fn a_browser_is_asked_for_a_password_and_told_plainly_what_is_not_there() {
    let web = Web::new(22).await;
    let unknown = "/domains/dom_00000000000000000000000000000000";
    let stranger = web.send(web.browser("npo_wrong", "GET", unknown).body(Body::empty()).unwrap()).await;
    assert_eq!(stranger.status, 401);
    assert!(stranger.header("www-authenticate").starts_with("Basic "));
    assert!(stranger.header("content-type").starts_with("text/html") && stranger.body.contains("A token is needed"));
    let known = web.send(web.browser(&web.operator, "GET", unknown).body(Body::empty()).unwrap()).await;
    assert_eq!(known.status, 404);
    assert!(known.body.contains("<h1 id=\"problem\">No such domain</h1>"), "{}", known.body);
    // The API takes no Basic credentials: browsers would send them by themselves.
    let api = web.send(web.browser(&web.operator, "GET", "/api/v1/domains").body(Body::empty()).unwrap()).await;
    assert_eq!(api.problem(), (401, "unauthorized".to_owned()));
}

#[tokio::test]
async fn forms_work_from_their_own_page_only() {
    let web = Web::new(23).await;
    let (tenant, token) = web.tenant("acme").await;
    let id = web.rig.claim(&tenant, "support.acme.test").await;
    let other = web.rig.claim(&tenant, "shop.acme.test").await;
    let path = format!("/domains/{id}");
    let page = web.send(web.browser(&token, "GET", &path).body(Body::empty()).unwrap()).await;
    let foreign_page = web.send(web.browser(&token, "GET", &format!("/domains/{other}")).body(Body::empty()).unwrap()).await;
    let (csrf, foreign) = (csrf_of(&page), csrf_of(&foreign_page));
    let post = |form: &str, origin: Option<(&str, &str)>, csrf: &str| {
        let mut request = web
            .browser(&token, "POST", &format!("{path}/{form}"))
            .header("content-type", "application/x-www-form-urlencoded");
        if let Some((name, value)) = origin {
            request = request.header(name, value);
        }
        web.send(request.body(Body::from(format!("csrf={csrf}"))).unwrap())
    };
    let ours = Some(("origin", PUBLIC_URL));
    for (origin, csrf) in [
        (Some(("origin", "https://evil.example")), csrf.as_str()),
        (Some(("origin", "null")), &csrf),
        (Some(("sec-fetch-site", "cross-site")), &csrf),
        (None, &csrf),
        (ours, &foreign),
        (ours, ""),
        (ours, "zz"),
    ] {
        for form in ["check", "remove"] {
            let answer = post(form, origin, csrf).await;
            assert_eq!(answer.status, 403, "{form} {origin:?} {csrf}: {}", answer.body);
        }
    }
    for (kind, body, status) in [
        ("application/json", "{}", 415),
        ("application/x-www-form-urlencoded", "more=1", 422),
        ("application/x-www-form-urlencoded", &format!("csrf={}", "0".repeat(100_000)), 413),
    ] {
        let sent = web.browser(&token, "POST", &format!("{path}/check")).header("content-type", kind);
        let answer = web.send(sent.body(Body::from(body.to_owned())).unwrap()).await;
        assert_eq!((answer.status.as_u16(), answer.header("content-type")), (status, "text/html; charset=utf-8"));
        assert!(answer.body.contains("<h1 id=\"problem\">"), "{}", answer.body);
    }
    web.rig.hand.advance(std::time::Duration::from_secs(6));
    let checked = post("check", ours, &csrf).await;
    assert_eq!((checked.status.as_u16(), checked.header("location")), (303, format!("{PUBLIC_URL}{path}?asked=1").as_str()));
    let soon = post("check", ours, &csrf).await;
    assert_eq!(soon.status, 429);
    assert!(soon.body.contains("Asked again too soon"), "{}", soon.body);
    let asked = web.send(web.browser(&token, "GET", &format!("{path}?asked=1")).body(Body::empty()).unwrap()).await;
    assert_eq!(asked.header("refresh"), format!("3;url={PUBLIC_URL}{path}"));
    let removed = post("remove", Some(("sec-fetch-site", "same-origin")), &csrf).await;
    assert_eq!((removed.status.as_u16(), removed.header("location")), (303, format!("{PUBLIC_URL}{path}").as_str()));
    let view = web.api(&token, "GET", &format!("/api/v1/domains/{id}"), None).await.json();
    assert_eq!(view["claim"], json!("withdrawn"));
    let actor = view["events"][0]["actor"].as_str().unwrap();
    assert!(actor.starts_with("tenant tok_"), "{actor}");
}
