//! Portal links and hand-off links: who may make them, that each signs in once, and what becomes of dead ones.

use std::time::Duration;

use axum::body::Body;
use serde_json::{Value, json};

use crate::support::rig::Rig;
use crate::support::services::postgres_url;
use crate::support::stores::{Kind, TestStore};
use crate::support::web::{Answer, PUBLIC_URL, Web};

const ALLOWED: &str = "[portal]\nreturn_urls = [\"https://app.example.com/settings\"]\n";

async fn make(web: &Web, token: &str, kind: &str, body: Value) -> Answer {
    web.api(token, "POST", &format!("/api/v1/{kind}-links"), Some(body)).await
}

fn path(made: &Answer) -> String {
    made.json()["url"].as_str().unwrap().strip_prefix(PUBLIC_URL).unwrap().to_owned()
}

#[tokio::test]
async fn a_link_is_looked_at_as_often_as_scanners_like_and_signs_in_once() {
    let web = Web::configured(300, ALLOWED).await;
    let (tenant, token) = web.tenant("acme").await;
    let domain = web.rig.claim(&tenant, "support.acme.test").await;
    let back = "https://app.example.com/settings/domains?tab=2";
    let body = json!({ "domain": domain, "return_url": back });
    let made = make(&web, &token, "portal", body).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let link = path(&made);
    for method in ["GET", "HEAD", "GET", "HEAD"] {
        let seen = web.send(web.browser("", method, &link).body(Body::empty()).unwrap()).await;
        assert_eq!((seen.status.as_u16(), seen.header("set-cookie")), (200, ""));
        assert_eq!((seen.header("cache-control"), seen.header("referrer-policy")), ("no-store", "same-origin"));
        assert_eq!(seen.header("x-robots-tag"), "noindex, nofollow");
    }
    let page = web.page("", &link).await;
    assert_eq!((page.body.matches("<form").count(), page.body.matches("<button").count()), (1, 1), "{}", page.body);
    let entered = web.post("", &link, "").await;
    assert_eq!(
        (entered.status.as_u16(), entered.header("location")),
        (303, format!("{PUBLIC_URL}/domains/{domain}").as_str())
    );
    let cookie = entered.cookie();
    let shown = web.page(&cookie, &format!("/domains/{domain}")).await;
    assert_eq!(shown.status, 200);
    assert!(shown.body.contains(&format!("href=\"{}\"", back.replace('&', "&#38;"))), "{}", shown.body);
    for again in [web.post("", &link, "").await, web.page("", &link).await] {
        assert_eq!((again.status.as_u16(), again.header("set-cookie")), (410, ""));
        assert!(again.body.contains("This link was used already") && again.body.contains("fresh link"), "{}", again.body);
    }
    // A dead link leaves the session that is there alone.
    assert_eq!(web.post(&cookie, &link, "").await.status, 410);
    assert_eq!(web.page(&cookie, "/domains").await.status, 200);
}

async fn of_fifty_one_signs_in(rig: Rig) {
    let web = Web::on(rig, "").await;
    let (tenant, _) = web.tenant("acme").await;
    let link = web.portal_link(&tenant).await;
    let all = futures::future::join_all((0..50).map(|_| web.post("", &link, ""))).await;
    let count = |status: u16| all.iter().filter(|answer| answer.status == status).count();
    assert_eq!((count(303), count(410)), (1, 49));
    let sessions = nameplate::store::sql("SELECT COUNT(*) AS n FROM sessions");
    assert_eq!(web.rig.count(sessions).await, 1);
}

#[tokio::test]
async fn of_fifty_at_once_one_signs_in_on_sqlite() {
    of_fifty_one_signs_in(Rig::new(301).await).await;
}

#[tokio::test]
async fn of_fifty_at_once_one_signs_in_on_postgresql() {
    assert!(!postgres_url().is_empty());
    let test = TestStore::blank(Kind::Postgres).await;
    of_fifty_one_signs_in(Rig::on(302, &test.url).await).await;
    test.remove().await;
}

#[tokio::test]
async fn links_die_of_time_of_being_taken_back_and_with_what_they_hang_by() {
    let web = Web::new(303).await;
    let (tenant, token) = web.tenant("acme").await;
    let dead = async |link: &str, status: u16, told: &str| {
        for answer in [web.page("", link).await, web.post("", link, "").await] {
            assert_eq!((answer.status.as_u16(), answer.header("set-cookie")), (status, ""), "{}", answer.body);
            assert!(answer.body.contains(told), "{}", answer.body);
        }
    };
    let old = web.portal_link(&tenant).await;
    web.rig.hand.advance(Duration::from_secs(15 * 60));
    dead(&old, 410, "This link has ended").await;
    dead(&format!("/enter/{}", "A".repeat(43)), 404, "This link leads nowhere").await;
    dead("/enter/x", 404, "This link leads nowhere").await;
    let made = make(&web, &web.operator, "portal", json!({ "tenant": "acme" })).await;
    let id = made.json()["id"].as_str().unwrap().to_owned();
    let revoked = web.api(&token, "DELETE", &format!("/api/v1/portal-links/{id}"), None).await;
    assert!(revoked.status == 200 && revoked.json()["revoked_at"].is_string(), "{}", revoked.body);
    dead(&path(&made), 410, "taken back").await;
    // Taken back too late, it takes back what it gave.
    let made = make(&web, &web.operator, "portal", json!({ "tenant": "acme" })).await;
    let (thief, other) = (web.post("", &path(&made), "").await.cookie(), web.admin(&tenant).await);
    assert_eq!(web.page(&thief, "/domains").await.status, 200);
    let revoke = format!("/api/v1/portal-links/{}", made.json()["id"].as_str().unwrap());
    assert_eq!(web.api(&token, "DELETE", &revoke, None).await.status, 200);
    assert_eq!(
        (web.page(&thief, "/domains").await.status.as_u16(), web.page(&other, "/domains").await.status.as_u16()),
        (401, 200)
    );
    // With the token that asked for it.
    let minted = nameplate::app::tokens::mint(
        &web.rig.app.store,
        &web.rig.env,
        &nameplate::app::tokens::Principal::Operator,
        "x",
        None,
    )
    .await
    .unwrap();
    let made = make(&web, minted.text.expose_str().unwrap(), "portal", json!({ "tenant": "acme" })).await;
    nameplate::app::tokens::revoke(&web.rig.app.store, &web.rig.env, &minted.id).await.unwrap();
    dead(&path(&made), 410, "taken back").await;
    // With its tenant.
    let link = web.portal_link(&tenant).await;
    for status in ["suspended", "deleted", "moving"] {
        let stmt = nameplate::store::sql("UPDATE tenants SET status = $1 WHERE id = $2");
        web.rig.app.store.execute(stmt.bind(status).bind(tenant.as_str())).await.unwrap();
        dead(&link, 410, "taken back").await;
        let refused = make(&web, &web.operator, "portal", json!({ "tenant": tenant })).await;
        assert_eq!(refused.problem(), (409, "tenant_not_active".to_owned()));
    }
}

#[tokio::test]
async fn links_are_made_for_oneself_and_lead_back_to_the_allowed_only() {
    let web = Web::configured(304, ALLOWED).await;
    let (acme, acme_token) = web.tenant("acme").await;
    let (_, other_token) = web.tenant("other").await;
    let domain = web.rig.claim(&acme, "support.acme.test").await;
    let unknown = "dom_00000000000000000000000000000000";
    for kind in ["portal", "hand-off"] {
        let theirs = make(&web, &other_token, kind, json!({ "domain": domain })).await;
        let none = make(&web, &other_token, kind, json!({ "domain": unknown })).await;
        assert_eq!((theirs.problem(), theirs.said()), (none.problem(), none.said()));
        assert_eq!(theirs.problem(), (422, "domain_unknown".to_owned()));
    }
    let theirs = make(&web, &other_token, "portal", json!({ "tenant": "acme" })).await;
    assert_eq!(theirs.problem(), (422, "tenant_unknown".to_owned()));
    assert_eq!(make(&web, &web.operator, "portal", json!({})).await.problem().1, "tenant_missing");
    // A domain of one tenant is no place for another to be led to.
    let mixed = make(&web, &web.operator, "portal", json!({ "tenant": "other", "domain": domain })).await;
    assert_eq!(mixed.problem(), (422, "domain_unknown".to_owned()));
    for url in [
        "//evil.example",
        "https://evil.example/settings",
        "https://app.example.com@evil.example/settings",
        "https://app.example.com\\@evil.example/settings",
        "https://app.example.com.evil.example/settings",
        "https://app.example.com/settings/../../x",
        "https://app.example.com/settings%2f..",
        "https://app.example.com//settings",
        "javascript:alert(1)",
        "https://app.example.com/settings\r\nx: y",
        "https://аpp.example.com/settings",
        "",
    ] {
        let refused = make(&web, &acme_token, "portal", json!({ "return_url": url })).await;
        assert_eq!(refused.problem(), (422, "return_url_not_allowed".to_owned()), "{url:?}");
    }
    for (bad, code) in
        [(json!(7_776_001), "expiry_out_of_range"), (json!(59), "expiry_out_of_range"), (json!("soon"), "wrong_fields")]
    {
        let body = json!({ "domain": domain, "expires_in": bad });
        assert_eq!(make(&web, &acme_token, "hand-off", body).await.problem().1, code);
    }
    // Each sees its own; a link is not to be read out of the list.
    let made = make(&web, &acme_token, "hand-off", json!({ "domain": domain })).await;
    assert_eq!(made.status, 201);
    let (secret, id) = (path(&made), made.json()["id"].as_str().unwrap().to_owned());
    let list = web.api(&acme_token, "GET", "/api/v1/hand-off-links", None).await;
    assert!(list.body.contains(&id) && !list.body.contains(secret.rsplit('/').next().unwrap()), "{}", list.body);
    assert!(!web.api(&other_token, "GET", "/api/v1/hand-off-links", None).await.body.contains(&id));
    let taken = web.api(&other_token, "DELETE", &format!("/api/v1/hand-off-links/{id}"), None).await;
    assert_eq!(taken.problem(), (404, "link_not_found".to_owned()));
    // One kind does not open the other's door.
    let text = secret.rsplit('/').next().unwrap();
    assert_eq!(web.page("", &format!("/enter/{text}")).await.status, 404);
    assert_eq!(web.page("", &secret).await.status, 200);
}

#[tokio::test]
async fn a_hand_off_page_shows_one_domain_changes_nothing_and_ends() {
    let web = Web::new(305).await;
    let (acme, token) = web.tenant("acme").await;
    let id = web.rig.claim(&acme, "support.acme.test").await;
    web.rig.claim(&acme, "secret.acme.test").await;
    let value = web.rig.value(&id).await;
    let made = make(&web, &token, "hand-off", json!({ "domain": id, "expires_in": 7200 })).await;
    let link = path(&made);
    let page = web.page("", &link).await;
    assert_eq!(page.status, 200);
    assert!(page.body.contains(&value) && page.body.contains(">_nameplate-challenge.support</code>"));
    assert!(!page.body.contains("secret.acme.test") && !page.body.contains("<form") && !page.body.contains("/remove"));
    assert!(page.body.contains("noindex") && page.header("x-robots-tag").contains("noindex"));
    assert!(page.body.contains(&format!("data-live=\"{link}/live?after=")), "{}", page.body);
    assert_eq!(page.header("set-cookie"), "");
    assert!(page.header("referrer-policy") == "no-referrer" && page.body.contains("content=\"no-referrer\""));
    // The same records as a file, which is as quiet; and nothing of it wears off, however often a scanner looks.
    for _ in 0..3 {
        let file = web.page("", &format!("{link}/records.zone")).await;
        assert_eq!((file.status.as_u16(), file.header("content-type")), (200, "text/dns"));
        assert_eq!(file.header("content-disposition"), "attachment; filename=\"support.acme.test.zone\"");
        assert_eq!((file.header("referrer-policy"), file.header("x-robots-tag")), ("no-referrer", "noindex, nofollow"));
        assert!(file.body.contains(&format!("_nameplate-challenge.support.acme.test. 300 IN TXT \"{value}\"\n")));
        assert!(!file.body.contains("secret") && file.body.contains("support.acme.test. 300 IN CNAME acme.app.example.\n"));
        // Every line is one that a zone takes in.
        let zones = nameplate::dns::world::ZoneStore::new();
        zones.add_zone("acme.test", "ns1.acme.test", "192.0.2.53".parse().unwrap());
        for line in file.body.lines().filter(|line| !line.starts_with(';')) {
            zones.add(line).unwrap();
        }
    }
    for method in ["POST", "DELETE", "PUT"] {
        let answer = web.send(web.browser("", method, &link).body(Body::empty()).unwrap()).await;
        assert_eq!(answer.status, 405);
    }
    // From the domain's page, a moment later: made, shown this once, taken back by its own form.
    web.rig.hand.advance(Duration::from_secs(1));
    let cookie = web.admin(&acme).await;
    let csrf = web.csrf(&cookie).await;
    let shared = web.post(&cookie, &format!("/domains/{id}/hand-off"), &format!("csrf={csrf}")).await;
    assert_eq!(shared.status, 201, "{}", shared.body);
    let url = shared.body.split("id=\"link\">").nth(1).unwrap().split('<').next().unwrap();
    let second = url.strip_prefix(PUBLIC_URL).unwrap();
    assert_eq!(web.page("", second).await.status, 200);
    let listed = web.page(&cookie, &format!("/domains/{id}")).await;
    assert!(!listed.body.contains(second));
    let ids: Vec<&str> =
        listed.body.split("name=\"link\" value=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert_eq!(ids.len(), 2, "{}", listed.body);
    let revoke = format!("/domains/{id}/hand-off/revoke");
    assert_eq!(web.post(&cookie, &revoke, &format!("csrf={csrf}&link=lnk_x")).await.status, 404);
    assert_eq!(web.post(&cookie, &revoke, &format!("csrf={csrf}&link={}", ids[0])).await.status, 303);
    let gone = web.page("", second).await;
    assert!(gone.status == 410 && gone.body.contains("taken back"), "{}", gone.body);
    web.rig.hand.advance(Duration::from_secs(2 * 3600));
    let ended = web.page("", &link).await;
    assert!(ended.status == 410 && ended.body.contains("This link has ended"), "{}", ended.body);
    assert_eq!((ended.header("referrer-policy"), ended.header("x-robots-tag")), ("no-referrer", "noindex, nofollow"));
    assert_eq!(web.page("", &format!("{link}/live")).await.status, 410);
    assert_eq!(web.page("", &format!("{link}/records.zone")).await.status, 410);
}

#[tokio::test]
async fn records_come_as_a_file_to_those_who_may_see_them() {
    let web = Web::new(306).await;
    let (acme, token) = web.tenant("acme").await;
    let (other, other_token) = web.tenant("other").await;
    let id = web.rig.claim(&acme, "support.acme.test").await;
    let (page, api) = (format!("/domains/{id}/records.zone"), format!("/api/v1/domains/{id}/records.zone"));
    let theirs = web.page(&web.admin(&acme).await, &page).await;
    let ours = web.api(&token, "GET", &api, None).await;
    assert_eq!((theirs.status.as_u16(), ours.status.as_u16()), (200, 200));
    assert!(theirs.body == ours.body && ours.header("content-type") == "text/dns", "{}", ours.body);
    assert_eq!(web.page(&web.admin(&other).await, &page).await.status, 404);
    assert_eq!(web.api(&other_token, "GET", &api, None).await.status, 404);
    assert!([401, 303].contains(&web.page("", &page).await.status.as_u16()));
}
