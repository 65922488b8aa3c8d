//! `www` and the bare name as two linked claims, by API and page, and what becomes of the link.

use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use nameplate::app;
use nameplate::model::hostname::Hostname;
use nameplate::model::id::DomainId;
use nameplate::store::sql;
use serde_json::{Value, json};

use crate::support::rig::Rig;
use crate::support::stores::{Kind, TestStore, until};
use crate::support::web::{Answer, Web};

const HOUR: Duration = Duration::from_secs(3600);

async fn claim(web: &Web, token: &str, body: Value) -> Value {
    let made = web.api(token, "POST", "/api/v1/domains", Some(body)).await;
    assert!(made.status.is_success(), "{}", made.body);
    made.json()
}

async fn show(web: &Web, token: &str, id: &str) -> Value {
    web.api(token, "GET", &format!("/api/v1/domains/{id}"), None).await.json()
}

fn id_of(view: &Value) -> DomainId {
    view["id"].as_str().unwrap().parse().unwrap()
}

async fn publish(web: &Web, view: &Value) {
    let (id, name) = (id_of(view), view["hostname"].as_str().unwrap());
    if name == "acme.test" {
        web.rig.zones.add("acme.test. 60 IN A 192.0.2.80").unwrap();
        let value = web.rig.value(&id).await;
        web.rig.zones.add(&format!("_nameplate-challenge.acme.test. 60 IN TXT \"{value}\"")).unwrap();
    } else {
        web.rig.publish(&id, name).await;
    }
}

/// Where edges send the visitors of a host.
async fn routed(web: &Web, name: &str) -> Option<String> {
    let rows = web.rig.app.store.query(sql("SELECT redirect_to FROM routes WHERE hostname = $1").bind(name)).await.unwrap();
    rows.first().and_then(|row| row.opt_text("redirect_to").unwrap())
}

#[tokio::test]
async fn a_name_is_claimed_with_its_other_half() {
    let web = Web::new(71).await;
    let (_, token) = web.tenant("acme").await;
    let body = json!({ "hostname": "acme.test", "with_partner": true, "redirect_to": "WWW.acme.test." });
    let apex = claim(&web, &token, body.clone()).await;
    let partner = &apex["partner"];
    assert_eq!((&partner["hostname"], &partner["claim"]), (&json!("www.acme.test"), &json!("awaiting_dns")));
    assert_eq!((&apex["redirect_to"], &apex["redirecting"]), (&json!("www.acme.test"), &json!(false)));
    let www = show(&web, &token, partner["id"].as_str().unwrap()).await;
    assert_eq!((&www["partner"]["id"], &www["redirect_to"]), (&apex["id"], &json!(null)));
    assert_eq!(www["partner"]["sentence"], "Visitors of acme.test are sent here as soon as this name is served.");
    assert_ne!(www["attempt"]["value"], apex["attempt"]["value"], "each has a value of its own");
    // Again, from either side, changes nothing.
    let again = claim(&web, &token, body).await;
    assert_eq!((&again["id"], &again["partner"]["id"]), (&apex["id"], &www["id"]));
    let other = claim(&web, &token, json!({ "hostname": "www.acme.test", "with_partner": true })).await;
    assert_eq!((&other["id"], &other["partner"]["id"]), (&www["id"], &apex["id"]));
    web.rig.pass(Duration::from_secs(60)).await;
    let told = web.rig.events(&id_of(&apex)).await;
    for kind in ["paired", "redirect_set"] {
        assert_eq!(told.iter().filter(|k| *k == kind).count(), 1, "{told:?}");
    }
    let who = sql("SELECT e.actor, c.actor AS claimed_by FROM events e JOIN events c ON c.domain_id = e.domain_id \
         WHERE e.kind = 'redirect_set' AND c.kind = 'claimed'");
    let who = &web.rig.app.store.query(who).await.unwrap()[0];
    assert_eq!(who.text("actor").unwrap(), who.text("claimed_by").unwrap(), "who asked for it is named");
    let story = web.api(&token, "GET", "/api/v1/explain?hostname=acme.test", None).await.json();
    let next = story["claims"][0]["next"].to_string();
    assert!(next.contains("sent on to www.acme.test as soon as it is served"), "{next}");
}

#[tokio::test]
async fn what_is_no_pair_is_refused() {
    let web = Web::new(72).await;
    let (_, token) = web.tenant("acme").await;
    for (body, code) in [
        (json!({ "hostname": "shop.acme.test", "with_partner": true }), "no_other_half"),
        (json!({ "hostname": "www.shop.acme.test", "with_partner": true }), "no_other_half"),
        (json!({ "hostname": "acme.test", "with_partner": true, "redirect_to": "evil.test" }), "not_the_other_half"),
        (json!({ "hostname": "acme.test", "redirect_to": "www.acme.test" }), "redirect_without_partner"),
        (json!({ "hostname": "acme.test", "with_partner": true, "redirect_to": "https://x/" }), "hostname_is_url"),
        (json!({ "hostname": "acme.test", "with_partner": "yes" }), "wrong_fields"),
    ] {
        let answer = web.api(&token, "POST", "/api/v1/domains", Some(body.clone())).await;
        assert_eq!(answer.problem(), (422, code.to_owned()), "{body}: {}", answer.body);
    }
    let none = sql("SELECT count(*) AS n FROM domains");
    assert_eq!(web.rig.count(none).await, 0, "nothing is half done");
    let alone = claim(&web, &token, json!({ "hostname": "acme.test" })).await;
    let path = format!("/api/v1/domains/{}", alone["id"].as_str().unwrap());
    let patch = async |body: Value| web.api(&token, "PATCH", &path, Some(body)).await.problem();
    assert_eq!(patch(json!({})).await, (422, "nothing_to_change".to_owned()));
    assert_eq!(patch(json!({ "redirect_to": "www.acme.test" })).await, (409, "other_half_not_claimed".to_owned()));
    assert_eq!(patch(json!({ "redirect_to": "acme.test" })).await, (422, "not_the_other_half".to_owned()));
    assert_eq!(patch(json!({ "redirect_to": "*.acme.test" })).await, (422, "hostname_wildcard".to_owned()));
    assert_eq!(patch(json!({ "redirect_to": 7 })).await, (422, "wrong_fields".to_owned()));
    let shop = claim(&web, &token, json!({ "hostname": "shop.acme.test" })).await;
    let path = format!("/api/v1/domains/{}", shop["id"].as_str().unwrap());
    let answer = web.api(&token, "PATCH", &path, Some(json!({ "redirect_to": "acme.test" }))).await;
    assert_eq!(answer.problem(), (422, "no_other_half".to_owned()));
}

/// The other half of another tenant is nobody's other half.
#[tokio::test]
async fn a_pair_is_one_tenants() {
    let web = Web::new(73).await;
    let (_, acme) = web.tenant("acme").await;
    let (_, other) = web.tenant("other").await;
    let theirs = claim(&web, &other, json!({ "hostname": "www.acme.test" })).await;
    publish(&web, &theirs).await;
    web.rig.until_active(&id_of(&theirs), HOUR).await;
    let mine = claim(&web, &acme, json!({ "hostname": "acme.test" })).await;
    let path = format!("/api/v1/domains/{}", mine["id"].as_str().unwrap());
    let answer = web.api(&acme, "PATCH", &path, Some(json!({ "redirect_to": "www.acme.test" }))).await;
    assert_eq!(answer.problem(), (409, "other_half_not_claimed".to_owned()), "as if nobody claimed it");
    let both =
        claim(&web, &acme, json!({ "hostname": "acme.test", "with_partner": true, "redirect_to": "www.acme.test" })).await;
    assert_ne!(both["partner"]["id"], theirs["id"]);
    publish(&web, &both).await;
    web.rig.until_active(&id_of(&both), HOUR).await;
    web.rig.pass(HOUR).await;
    let seen = show(&web, &other, theirs["id"].as_str().unwrap()).await;
    assert_eq!((&seen["partner"], &seen["redirect_to"]), (&json!(null), &json!(null)));
    let text = seen.to_string();
    assert!(!text.contains(mine["id"].as_str().unwrap()) && !text.contains("\"acme\""), "{text}");
    let linked = sql(
        "SELECT count(*) AS n FROM domains a JOIN domains b ON b.id = a.linked_domain_id WHERE a.tenant_id <> b.tenant_id",
    );
    assert_eq!(web.rig.count(linked).await, 0);
    // Not even where somebody wrote one into the store.
    let forged = sql("UPDATE domains SET linked_domain_id = $2, redirects = 1 WHERE id = $1");
    for (a, b) in [(&theirs, &mine), (&mine, &theirs)] {
        let stmt = forged.clone().bind(a["id"].as_str().unwrap()).bind(b["id"].as_str().unwrap());
        web.rig.app.store.execute(stmt).await.unwrap();
    }
    assert_eq!(show(&web, &other, theirs["id"].as_str().unwrap()).await["partner"], json!(null));
    let answer = web.api(&other, "PATCH", &path, Some(json!({ "redirect_to": null }))).await;
    assert_eq!(answer.problem(), (404, "domain_not_found".to_owned()));
}

#[tokio::test]
async fn a_redirect_is_set_changed_and_never_a_loop() {
    let web = Web::new(74).await;
    let (_, token) = web.tenant("acme").await;
    let apex = claim(&web, &token, json!({ "hostname": "acme.test", "with_partner": true })).await;
    let www = show(&web, &token, apex["partner"]["id"].as_str().unwrap()).await;
    publish(&web, &apex).await;
    publish(&web, &www).await;
    web.rig.until_active(&id_of(&apex), HOUR).await;
    web.rig.until_active(&id_of(&www), HOUR).await;
    let path = |view: &Value| format!("/api/v1/domains/{}", view["id"].as_str().unwrap());
    let redirect =
        async |view: &Value, to: Value| web.api(&token, "PATCH", &path(view), Some(json!({ "redirect_to": to }))).await;
    let set = redirect(&apex, json!("www.acme.test")).await;
    assert_eq!(set.status, 200, "{}", set.body);
    assert_eq!((&set.json()["redirect_to"], &set.json()["redirecting"]), (&json!("www.acme.test"), &json!(true)));
    assert_eq!(set.json()["partner"]["sentence"], "Visitors are sent on to www.acme.test.");
    assert_eq!(routed(&web, "acme.test").await.as_deref(), Some("www.acme.test"));
    assert_eq!(redirect(&www, json!("acme.test")).await.problem(), (409, "redirect_loop".to_owned()));
    let body = json!({ "hostname": "acme.test", "with_partner": true, "redirect_to": "acme.test" });
    let loops = web.api(&token, "POST", "/api/v1/domains", Some(body)).await;
    assert_eq!(loops.problem(), (409, "redirect_loop".to_owned()));
    assert_eq!(redirect(&apex, json!(null)).await.json()["redirect_to"], json!(null));
    assert_eq!(routed(&web, "acme.test").await, None);
    assert_eq!(redirect(&www, json!("acme.test")).await.status, 200);
    assert_eq!(routed(&web, "www.acme.test").await.as_deref(), Some("acme.test"));
    web.rig.pass(Duration::from_secs(60)).await;
    let told = web.rig.events(&id_of(&apex)).await;
    for kind in ["redirect_set", "redirect_dropped"] {
        assert_eq!(told.iter().filter(|k| *k == kind).count(), 1, "{told:?}");
    }
    // Both at once: one of them is told no, whichever comes first.
    redirect(&www, json!(null)).await;
    let (a, b) = tokio::join!(redirect(&apex, json!("www.acme.test")), redirect(&www, json!("acme.test")));
    let mut codes = [a.status.as_u16(), b.status.as_u16()];
    codes.sort_unstable();
    assert_eq!(codes, [200, 409]);
    let stale = Request::builder().method("PATCH").uri(path(&apex)).header("authorization", format!("Bearer {token}"));
    let stale = stale.header("content-type", "application/json").header("if-match", "\"v0.00\"");
    let stale = web.send(stale.body(Body::from(r#"{"redirect_to":null}"#)).unwrap()).await;
    assert_eq!(stale.problem(), (412, "changed_meanwhile".to_owned()));
    web.rig.check_invariants().await;
}

/// Of two who count on the same version one is told that it is another by now: at once, and not when the change is in the history.
#[tokio::test]
async fn a_version_is_counted_on_by_one_writer_only() {
    let web = Web::new(78).await;
    let (_, token) = web.tenant("acme").await;
    let apex = claim(&web, &token, json!({ "hostname": "acme.test", "with_partner": true })).await;
    let path = |view: &Value| format!("/api/v1/domains/{}", view["id"].as_str().unwrap());
    let tag = async |path: &str| web.api(&token, "GET", path, None).await.header("etag").to_owned();
    let counting = async |method: &str, path: &str, tag: &str, body: Option<Value>| -> Answer {
        let request = Request::builder().method(method).uri(path).header("authorization", format!("Bearer {token}"));
        let request = request.header("content-type", "application/json").header("if-match", tag);
        web.send(request.body(body.map_or(Body::empty(), |body| Body::from(body.to_string()))).unwrap()).await
    };
    let to_www = || Some(json!({ "redirect_to": "www.acme.test" }));
    let (own, partner) = (path(&apex), path(&apex["partner"]));
    let seen = tag(&own).await;
    let (a, b) = tokio::join!(counting("PATCH", &own, &seen, to_www()), counting("PATCH", &own, &seen, to_www()));
    let mut codes = [a.status.as_u16(), b.status.as_u16()];
    codes.sort_unstable();
    assert_eq!(codes, [200, 412], "{} {}", a.body, b.body);
    // The answer's own version is the present one, until the next change.
    let answered = if a.status == 200 { &a } else { &b }.header("etag").to_owned();
    assert_eq!(answered, tag(&own).await);
    assert_eq!(counting("PATCH", &own, &answered, Some(json!({ "redirect_to": null }))).await.status, 200);
    for method in ["PATCH", "DELETE"] {
        let stale = counting(method, &own, &answered, (method == "PATCH").then(to_www).flatten()).await;
        assert_eq!(stale.problem(), (412, "changed_meanwhile".to_owned()), "{method}");
    }
    assert_eq!(counting("POST", &format!("{own}/check"), &answered, None).await.status, 412);
    // What changes nothing raises nothing; a half that goes changes the other.
    let seen = tag(&own).await;
    assert_eq!(counting("PATCH", &own, &seen, Some(json!({ "redirect_to": null }))).await.status, 200);
    assert_eq!(seen, tag(&own).await);
    assert_eq!(web.api(&token, "DELETE", &partner, None).await.status, 200);
    assert_eq!(counting("DELETE", &own, &seen, None).await.problem(), (412, "changed_meanwhile".to_owned()));
    assert_eq!(counting("DELETE", &own, &tag(&own).await, None).await.status, 200);
    web.rig.check_invariants().await;
}

/// A half that somebody else took keeps its link while it rests: the one that stays keeps its visitors when it is told to.
#[tokio::test]
async fn visitors_are_kept_from_a_half_that_somebody_else_took() {
    let web = Web::new(80).await;
    let (_, token) = web.tenant("acme").await;
    let body = json!({ "hostname": "acme.test", "with_partner": true, "redirect_to": "www.acme.test" });
    let apex = claim(&web, &token, body).await;
    let taken = sql("UPDATE domains SET claim = 'releasing' WHERE id = $1").bind(apex["partner"]["id"].as_str().unwrap());
    web.rig.app.store.execute(taken).await.unwrap();
    let path = format!("/api/v1/domains/{}", apex["id"].as_str().unwrap());
    let kept = web.api(&token, "PATCH", &path, Some(json!({ "redirect_to": null }))).await;
    assert_eq!((kept.status.as_u16(), &kept.json()["redirect_to"]), (200, &json!(null)), "{}", kept.body);
    let again = web.api(&token, "PATCH", &path, Some(json!({ "redirect_to": "www.acme.test" }))).await;
    assert_eq!(again.problem(), (409, "other_half_not_claimed".to_owned()));
}

/// Whoever holds the lock of the half with the lower id may take the other one, whichever half somebody removes meanwhile.
#[tokio::test]
async fn both_halves_are_locked_in_one_order_on_postgresql() {
    let test = TestStore::blank(Kind::Postgres).await;
    let rig = Rig::on(79, &test.url).await;
    let tenant = rig.tenant("acme").await;
    let touch = |id: &DomainId| sql("UPDATE domains SET redirects = redirects WHERE id = $1").bind(id.as_str());
    for removed in [0, 1] {
        let name = Hostname::trusted(&format!("pair{removed}.test"));
        app::pair::claim_with_partner(&rig.app, &tenant, &name, None, "tenant").await.unwrap();
        let ids = sql("SELECT id FROM domains WHERE hostname IN ($1, $2) ORDER BY id");
        let ids = ids.bind(name.as_str()).bind(name.partner().unwrap().as_str());
        let ids: Vec<DomainId> =
            rig.app.store.query(ids).await.unwrap().iter().map(|row| row.parse("id").unwrap()).collect();
        let mut first = rig.app.store.begin().await.unwrap();
        first.execute(touch(&ids[0])).await.unwrap();
        let removing = tokio::spawn({
            let (app, id) = (rig.app.clone(), ids[removed].clone());
            async move { app::remove::remove(&app, &id, "tenant").await }
        });
        let waits =
            "SELECT count(*) AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        until("the removal waits for the first half", async || rig.count(sql(waits)).await == 1).await;
        first.execute(touch(&ids[1])).await.unwrap();
        first.commit().await.unwrap();
        removing.await.unwrap().unwrap();
        let left = sql("SELECT count(*) AS n FROM domains WHERE id = $1 AND linked_domain_id IS NULL AND edits = 2");
        assert_eq!(rig.count(left.bind(ids[1 - removed].as_str())).await, 1);
    }
    // Everybody at once, on both halves, gets an answer.
    let name = Hostname::trusted("busy.test");
    let half = name.partner().unwrap();
    for _ in 0..5 {
        let id = app::pair::claim_with_partner(&rig.app, &tenant, &name, None, "tenant").await.unwrap().id;
        let other = sql("SELECT linked_domain_id FROM domains WHERE id = $1").bind(id.as_str());
        let other: DomainId = rig.app.store.query(other).await.unwrap()[0].parse("linked_domain_id").unwrap();
        let expect = app::expect::Expect::ANY;
        let (claims, set, other_set, removed, other_removed) = tokio::join!(
            app::pair::claim_with_partner(&rig.app, &tenant, &half, None, "tenant"),
            app::pair::redirect_if(&rig.app, &id, Some(&half), &expect, "tenant"),
            app::pair::redirect_if(&rig.app, &other, Some(&name), &expect, "tenant"),
            app::remove::remove(&rig.app, &id, "tenant"),
            app::remove::remove(&rig.app, &other, "tenant"),
        );
        assert!(claims.is_ok() && removed.is_ok() && other_removed.is_ok(), "{claims:?} {removed:?} {other_removed:?}");
        for done in [set, other_set] {
            assert!(!matches!(done, Err(app::pair::PairError::App(_))), "{done:?}");
        }
    }
    drop(rig);
    test.remove().await;
}

/// Removing one half leaves the other, drops the redirect, and says so.
#[tokio::test]
async fn removing_one_half_leaves_the_other() {
    for target_goes in [true, false] {
        let web = Web::new(75).await;
        let (_, token) = web.tenant("acme").await;
        let body = json!({ "hostname": "acme.test", "with_partner": true, "redirect_to": "www.acme.test" });
        let apex = claim(&web, &token, body).await;
        let www = show(&web, &token, apex["partner"]["id"].as_str().unwrap()).await;
        publish(&web, &apex).await;
        web.rig.until_active(&id_of(&apex), HOUR).await;
        assert_eq!(routed(&web, "acme.test").await.as_deref(), Some("www.acme.test"));
        let seen = show(&web, &token, apex["id"].as_str().unwrap()).await;
        assert_eq!(seen["redirecting"], json!(false), "the other half is not served yet");
        publish(&web, &www).await;
        web.rig.until_active(&id_of(&www), HOUR).await;
        let (goes, stays) = if target_goes { (&www, &apex) } else { (&apex, &www) };
        let removed = web.api(&token, "DELETE", &format!("/api/v1/domains/{}", goes["id"].as_str().unwrap()), None).await;
        assert_eq!((removed.status.as_u16(), &removed.json()["partner"]), (200, &json!(null)));
        web.rig.pass(Duration::from_secs(60)).await;
        web.rig.edge_follows().await;
        let left = show(&web, &token, stays["id"].as_str().unwrap()).await;
        assert_eq!((&left["claim"], &left["serving"]), (&json!("live"), &json!(true)));
        assert_eq!((&left["partner"], &left["redirect_to"]), (&json!(null), &json!(null)));
        for name in ["acme.test", "www.acme.test"] {
            assert_eq!(routed(&web, name).await, None, "{name}");
        }
        assert!(web.rig.events(&id_of(stays)).await.contains(&"partner_gone".to_owned()));
        assert!(web.rig.serial_at_edge(stays["hostname"].as_str().unwrap()).is_some());
        // Claimed again it is linked anew.
        let again = claim(&web, &token, json!({ "hostname": goes["hostname"], "with_partner": true })).await;
        assert_ne!(again["id"], goes["id"]);
        assert_eq!(again["partner"]["id"], stays["id"]);
        // The half that stayed has had two others by now, and goes all the same.
        let removed = web.api(&token, "DELETE", &format!("/api/v1/domains/{}", stays["id"].as_str().unwrap()), None).await;
        assert_eq!(removed.status, 200, "{}", removed.body);
        web.rig.pass(Duration::from_secs(60)).await;
        assert!(web.rig.events(&id_of(&again)).await.contains(&"partner_gone".to_owned()));
        web.rig.check_invariants().await;
    }
}

/// A pasted list goes on as before, and with the box ticked every pair is made.
#[tokio::test]
async fn the_page_adds_both_halves() {
    let web = Web::new(76).await;
    let (tenant, _) = web.tenant("acme").await;
    let cookie = web.admin(&tenant).await;
    let csrf = web.csrf(&cookie).await;
    let form = web.page(&cookie, "/domains/add").await;
    assert!(form.body.contains("name=\"with_partner\"") && form.body.contains("name=\"redirect\""));
    let names = "names=acme.test+shop.acme.test+nonsense";
    let answer = web.post(&cookie, "/domains/add", &format!("csrf={csrf}&{names}&with_partner=1&redirect=1")).await;
    assert_eq!(answer.status, 422, "one name was refused: {}", answer.body);
    assert!(!answer.body.contains("Visitors try both"), "both were added");
    let rows = sql("SELECT hostname, redirects FROM domains ORDER BY hostname");
    let seen: Vec<_> = web.rig.app.store.query(rows).await.unwrap();
    let seen: Vec<_> = seen.iter().map(|r| (r.text("hostname").unwrap(), r.int("redirects").unwrap())).collect();
    let of = |name: &str, n| (name.to_owned(), n);
    assert_eq!(seen, [of("acme.test", 0), of("shop.acme.test", 0), of("www.acme.test", 1)]);
    let one = sql("SELECT id FROM domains WHERE hostname = 'www.acme.test'");
    let id = web.rig.app.store.query(one).await.unwrap()[0].text("id").unwrap();
    let page = web.page(&cookie, &format!("/domains/{id}")).await;
    assert!(page.body.contains("Visitors are sent on to acme.test as soon as it is served"), "{}", page.body);
    // Without the box it is as it was.
    let (beta, _) = web.tenant("beta").await;
    let cookie = web.admin(&beta).await;
    let csrf = web.csrf(&cookie).await;
    let answer = web.post(&cookie, "/domains/add", &format!("csrf={csrf}&names=acme.test+shop.acme.test")).await;
    assert_eq!(answer.status, 200);
    assert!(answer.body.contains("Visitors try both") && answer.body.contains("www.acme.test"));
}
