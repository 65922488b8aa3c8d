//! The pages of domains: what they show, their forms, long lists and histories, and what they keep from others.

use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use nameplate::app::tokens::Principal;
use nameplate::model::ledger::Limit;
use nameplate::store::sql;
use nameplate::web::ROUTES;
use serde_json::json;

use crate::support::seed;
use crate::support::web::{PUBLIC_URL, Web};

/// The most a page may weigh.
const HEAVIEST: usize = 60_000;

#[tokio::test]
async fn the_page_shows_what_to_publish_and_is_hardened() {
    let web = Web::new(21).await;
    let (tenant, _) = web.tenant("acme").await;
    let id = web.rig.claim(&tenant, "support.acme.test").await;
    let value = web.rig.value(&id).await;
    for reader in [web.admin(&tenant).await, web.signed_in_operator().await] {
        let page = web.page(&reader, &format!("/domains/{id}")).await;
        assert_eq!(page.status, 200, "{}", page.body);
        assert!(page.header("content-type").starts_with("text/html"));
        assert!(page.body.contains(&value) && page.body.contains("_nameplate-challenge.support.acme.test. 300 IN TXT"));
        assert!(page.body.contains("<title>support.acme.test: Waiting for DNS · Nameplate</title>"), "{}", page.body);
        let policy = page.header("content-security-policy");
        assert!(
            policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe")
        );
        assert_eq!((page.header("cache-control"), page.header("x-content-type-options")), ("no-store", "nosniff"));
        assert!(!page.body.contains("style=\"") && !page.body.contains(" onclick"));
        assert!(!page.body.contains(reader.split_once('=').unwrap().1));
    }
    for (asset, kind) in [
        ("/assets/style.css", "text/css"),
        ("/assets/brand.css", "text/css"),
        ("/assets/portal.js", "text/javascript"),
        ("/assets/icon.svg", "image/svg+xml"),
    ] {
        let answer = web.page("", asset).await;
        assert!(answer.status == 200 && answer.header("content-type").starts_with(kind), "{asset}");
        assert!(answer.body.len() < 30_000, "{asset}");
    }
    assert_eq!(web.page("", "/assets/logo").await.status, 404);
}

#[tokio::test]
async fn page_and_document_name_the_dns_host_that_a_look_recognised_and_no_other() {
    let web = Web::new(29).await;
    let (tenant, token) = web.tenant("acme").await;
    let id = web.rig.claim(&tenant, "support.acme.test").await;
    let hostile = "<img src=x onerror=alert(1)>";
    let finding = |check: &str, reason: &str| {
        json!({
            "check": check, "reason": reason, "expected": "", "observed": [], "seen_by": [], "advice": "",
            "record_to_publish": [], "looked_at": 1_800_000_000_000_000_i64,
        })
    };
    let host = json!({ "provider": hostile, "zone": "acme.test\u{202e}<b>", "steps": ["At it: <script>"] });
    let (mut known, unknown) = (finding("routing", "cname_missing"), finding("ownership", "txt_missing"));
    known["dns_host"] = host.clone();
    let evidence = json!([unknown, known]).to_string();
    web.rig.app.store.execute(sql("UPDATE domains SET evidence = $1").bind(evidence)).await.unwrap();

    let checks = web.api(&token, "GET", &format!("/api/v1/domains/{id}"), None).await.json()["checks"].clone();
    assert_eq!((checks[0].get("dns_host"), checks[1].get("dns_host")), (None, Some(&host)), "{checks}");
    let page = web.page(&web.admin(&tenant).await, &format!("/domains/{id}")).await;
    assert_eq!(page.status, 200, "{}", page.body);
    assert_eq!(page.body.matches("Your DNS is hosted at").count(), 1, "{}", page.body);
    assert!(
        page.body.contains("&#60;img src=x onerror=alert(1)&#62;") && page.body.contains("acme.test[U+202E]&#60;b&#62;")
    );
    assert!(!page.body.contains("<img") && !page.body.contains("<b>"), "{}", page.body);
}

#[tokio::test]
async fn whoever_is_not_signed_in_is_told_how_to_get_in() {
    let web = Web::new(22).await;
    let unknown = "/domains/dom_00000000000000000000000000000000";
    let stranger = web.page("__Host-nameplate=x", unknown).await;
    assert_eq!(stranger.status, 401);
    assert!(stranger.header("content-type").starts_with("text/html"));
    assert!(stranger.body.contains("Please sign in") && stranger.body.contains("/operator/sign-in?next="));
    let operator = web.signed_in_operator().await;
    let known = web.page(&operator, unknown).await;
    assert_eq!(known.status, 404);
    assert!(known.body.contains("<h1 id=\"problem\">No such domain</h1>"), "{}", known.body);
    let api = web.send(web.browser(&operator, "GET", "/api/v1/domains").body(Body::empty()).unwrap()).await;
    assert_eq!(api.problem(), (401, "unauthorized".to_owned()));
    assert!(web.page("", "/").await.body.contains("Open this page from your application"));
    assert_eq!(web.page(&operator, "/").await.header("location"), format!("{PUBLIC_URL}/operator"));
    // An operator's list is the one that goes by index over all tenants; nothing follows the other live.
    let list = web.page(&operator, "/domains?q=acme").await;
    assert_eq!((list.status.as_u16(), list.header("location")), (303, &*format!("{PUBLIC_URL}/operator/domains")));
    assert_eq!(web.page(&operator, "/domains/live").await.status, 404);
}

#[tokio::test]
async fn forms_of_a_domain_work_and_answer_in_words() {
    let web = Web::new(23).await;
    let (tenant, token) = web.tenant("acme").await;
    let cookie = web.admin(&tenant).await;
    let id = web.rig.claim(&tenant, "support.acme.test").await;
    let path = format!("/domains/{id}");
    let csrf = web.page(&cookie, &path).await.csrf();
    for (kind, body, status) in [
        ("application/json", "{}", 415),
        ("application/x-www-form-urlencoded", "more=1", 422),
        ("application/x-www-form-urlencoded", &format!("csrf={}", "0".repeat(100_000)), 413),
    ] {
        let sent = web.browser(&cookie, "POST", &format!("{path}/check")).header("content-type", kind);
        let answer = web.send(sent.header("origin", PUBLIC_URL).body(Body::from(body.to_owned())).unwrap()).await;
        assert_eq!((answer.status.as_u16(), answer.header("content-type")), (status, "text/html; charset=utf-8"));
        assert!(answer.body.contains("<h1 id=\"problem\">"), "{}", answer.body);
    }
    web.rig.hand.advance(Duration::from_secs(6));
    let form = format!("csrf={csrf}");
    let checked = web.post(&cookie, &format!("{path}/check"), &form).await;
    assert_eq!((checked.status.as_u16(), checked.header("location")), (303, format!("{PUBLIC_URL}{path}?asked=1").as_str()));
    let soon = web.post(&cookie, &format!("{path}/check"), &form).await;
    assert_eq!(soon.status, 429);
    assert!(soon.body.contains("Asked again too soon"), "{}", soon.body);
    let asked = web.page(&cookie, &format!("{path}?asked=1")).await;
    assert_eq!(asked.header("refresh"), format!("3;url={PUBLIC_URL}{path}"));
    let sure = web.page(&cookie, &format!("{path}/remove")).await;
    assert!(sure.status == 200 && sure.body.contains("The claim is withdrawn") && sure.body.contains("300 IN CNAME"));
    assert_eq!(web.rig.domain_text(&id, "claim").await.unwrap(), "awaiting_dns");
    let removed = web.post(&cookie, &format!("{path}/remove"), &form).await;
    assert_eq!((removed.status.as_u16(), removed.header("location")), (303, format!("{PUBLIC_URL}{path}").as_str()));
    for again in
        [web.post(&cookie, &format!("{path}/remove"), &form).await, web.page(&cookie, &format!("{path}/remove")).await]
    {
        assert!(again.status == 409 && again.body.contains("removed already"), "{}", again.body);
    }
    assert_eq!(web.post(&cookie, &format!("{path}/hand-off"), &form).await.status, 409);
    let view = web.api(&token, "GET", &format!("/api/v1/domains/{id}"), None).await.json();
    assert_eq!(view["claim"], json!("withdrawn"));
    let actor = view["events"][0]["actor"].as_str().unwrap();
    assert!(actor.starts_with("tenant ses_"), "{actor}");
    assert!(web.page(&cookie, &path).await.body.contains("by you, in the portal"));
}

#[tokio::test]
async fn a_live_domain_shows_its_certificate_and_what_its_removal_means() {
    let web = Web::new(24).await;
    let (tenant, _) = web.tenant("acme").await;
    let id = web.rig.claim(&tenant, "support.acme.test").await;
    web.rig.publish(&id, "support.acme.test").await;
    web.rig.until_active(&id, Duration::from_secs(600)).await;
    let cookie = web.admin(&tenant).await;
    let page = web.page(&cookie, &format!("/domains/{id}")).await;
    assert!(
        page.body.contains("<progress id=\"life\"") && page.body.contains("<code>support.acme.test</code>"),
        "{}",
        page.body
    );
    let sure = web.page(&cookie, &format!("/domains/{id}/remove")).await;
    assert!(sure.body.contains("For 7 days the name is kept back"), "{}", sure.body);
    assert!(sure.body.contains("still points to us") && sure.body.contains("support.acme.test. 300 IN CNAME"));
    let csrf = sure.csrf();
    assert_eq!(web.post(&cookie, &format!("/domains/{id}/remove"), &format!("csrf={csrf}")).await.status, 303);
    let gone = web.page(&cookie, &format!("/domains/{id}")).await;
    assert!(gone.body.contains("On its way out") && gone.body.contains("Delete these from the DNS"), "{}", gone.body);
    let list = web.page(&cookie, "/domains").await;
    assert!(!list.body.contains("support.acme.test") && list.body.contains("No domains yet"));
    assert!(web.page(&cookie, "/domains?state=removed").await.body.contains("support.acme.test"));
}

fn encoded(text: &str) -> String {
    nameplate::web::query(&[("names", text)])
}

#[tokio::test]
async fn several_names_are_added_at_once_and_nothing_that_was_typed_is_lost() {
    let web = Web::new(25).await;
    let (tenant, _) = web.tenant("acme").await;
    let cookie = web.admin(&tenant).await;
    let csrf = web.csrf(&cookie).await;
    let add = async |text: &str| web.post(&cookie, "/domains/add", &format!("csrf={csrf}&{}", encoded(text))).await;
    let one = add("  Shop.Acme.Test. ").await;
    assert_eq!(one.status, 303);
    assert!(one.header("location").starts_with(&format!("{PUBLIC_URL}/domains/dom_")));
    let many = add("https://blog.acme.test/x, shop.acme.test\n*.acme.test;<b>bold</b> \u{202e}evil.test\r\nacme.test").await;
    assert_eq!(many.status, 422);
    for said in ["3 added", "blog.acme.test</bdi>", "Yours already", "3 not added", "Add www.acme.test", "&#60;b&#62;bold"] {
        assert!(many.body.contains(said), "{said}: {}", many.body);
    }
    assert!(!many.body.contains("<b>") && !many.body.contains('\u{202e}'));
    let kept = many.body.split("<textarea").nth(1).unwrap().split("</textarea>").next().unwrap();
    assert!(kept.contains("*.acme.test\n") && kept.contains("[U+202E]evil.test") && !kept.contains("blog"), "{kept}");
    let none = add(" ,, ").await;
    assert!(none.status == 422 && none.body.contains("Type at least one name"), "{}", none.body);
    let nul = add(&format!("a\0b.acme.test {}", "x".repeat(10_000))).await;
    assert_eq!(nul.status, 422);
    assert!(nul.body.contains("[U+0000]") && nul.body.len() < HEAVIEST);
    let bulk: String = (0..130).map(|n| format!("h{n}.acme.test\n")).collect();
    let first = add(&bulk).await;
    assert!(
        first.status == 200 && first.body.contains("100 added") && first.body.contains("30 more names"),
        "{}",
        first.body
    );
    assert!(first.body.contains("h129.acme.test</textarea>") && first.body.len() < HEAVIEST);
    // An operator names the tenant; what was typed stays when there is none.
    let operator = web.signed_in_operator().await;
    let csrf = web.csrf(&operator).await;
    let wrong = web.post(&operator, "/domains/add", &format!("csrf={csrf}&tenant=nobody&{}", encoded("b.acme.test"))).await;
    assert!(
        wrong.status == 422 && wrong.body.contains("There is no tenant") && wrong.body.contains("b.acme.test</textarea>")
    );
    let right = web.post(&operator, "/domains/add", &format!("csrf={csrf}&tenant=acme&{}", encoded("b.acme.test"))).await;
    assert_eq!(right.status, 303, "{}", right.body);
}

#[tokio::test]
async fn a_long_list_is_paged_searched_and_kept_light() {
    let web = Web::new(26).await;
    let (acme, _) = web.tenant("acme").await;
    let (other, _) = web.tenant("other").await;
    web.rig.claim(&other, "theirs.other.test").await;
    let mut tx = web.rig.app.store.begin().await.unwrap();
    let label = "l".repeat(60);
    for n in 0..200_u16 {
        let name = format!("n{n:03}.{label}.{label}.{label}.acme.test");
        tx.execute(seed::domain(&seed::domain_id(n), &acme, &name, web.rig.env.now())).await.unwrap();
    }
    tx.commit().await.unwrap();
    let cookie = web.admin(&acme).await;
    let (mut path, mut seen, mut pages) = ("/domains".to_owned(), Vec::new(), 0);
    loop {
        let page = web.page(&cookie, &path).await;
        assert_eq!(page.status, 200);
        assert!(page.body.len() < HEAVIEST, "{} bytes", page.body.len());
        assert!(!page.body.contains("theirs.other"));
        assert_eq!(page.body.contains("data-live=\"/domains/live?after="), pages == 0);
        let names = page
            .body
            .split("<th scope=\"row\"")
            .skip(1)
            .map(|row| row.split("<bdi>").nth(1).unwrap().split('.').next().unwrap().to_owned());
        seen.extend(names);
        pages += 1;
        let next = page.body.split("rel=\"next\"").next().filter(|_| page.body.contains("rel=\"next\""));
        let Some(before) = next else { break };
        path = before.rsplit("href=\"").next().unwrap().split('"').next().unwrap().replace("&#38;", "&");
    }
    assert_eq!((pages, seen.len()), (4, 200));
    assert!(seen.is_sorted());
    let found = web.page(&cookie, "/domains?q=N117").await;
    assert_eq!(found.body.matches("<th scope=\"row\"").count(), 1);
    for odd in ["%25", "_", "!", "%00", "%E2%80%AE", "\"><script>"] {
        let page = web
            .page(&cookie, &format!("/domains?q={}", odd.replace('"', "%22").replace('<', "%3C").replace('>', "%3E")))
            .await;
        assert!(page.status == 200 && page.body.contains("Nothing found"), "{odd}: {}", page.body);
        assert!(!page.body.contains("\"><script>") && !page.body.contains('\u{202e}'));
    }
    for odd in ["after=x", "after=%00,dom_1", "state=odd"] {
        assert_eq!(web.page(&cookie, &format!("/domains?{odd}")).await.status, 200, "{odd}");
    }
}

#[tokio::test]
async fn a_long_and_hostile_history_is_paged_and_kept_light() {
    let web = Web::new(27).await;
    let (acme, _) = web.tenant("acme").await;
    let id = web.rig.claim(&acme, "support.acme.test").await;
    let hostile = format!("<img src=x onerror=alert(1)>\u{202e}{}", "x".repeat(10_000));
    for n in 2..300_i64 {
        let stmt = sql("INSERT INTO events (id, tenant_id, domain_id, domain_seq, kind, actor, cause, detail, at) \
             VALUES ($1, $2, $3, $4, 'looked', $5, $5, $6, 0)")
        .bind(format!("evt_{n:032x}"))
        .bind(acme.as_str())
        .bind(id.as_str())
        .bind(n)
        .bind(hostile.as_str())
        .bind(json!({ "a": vec![&hostile; 50] }).to_string());
        web.rig.app.store.execute(stmt).await.unwrap();
    }
    let cookie = web.admin(&acme).await;
    let (mut path, mut events) = (format!("/domains/{id}/history"), 0);
    let page = web.page(&cookie, &format!("/domains/{id}")).await;
    assert!(page.body.len() < HEAVIEST && page.body.contains("The whole history"), "{} bytes", page.body.len());
    loop {
        let page = web.page(&cookie, &path).await;
        assert_eq!(page.status, 200);
        assert!(page.body.len() < HEAVIEST, "{} bytes", page.body.len());
        assert!(
            !page.body.contains("<img") && !page.body.contains('\u{202e}') && page.body.contains("[U+202E]") || events > 250
        );
        events += page.body.matches("class=\"cause\"").count();
        let Some(before) = page.body.split("rel=\"next\"").next().filter(|_| page.body.contains("rel=\"next\"")) else {
            break;
        };
        path = before.rsplit("href=\"").next().unwrap().split('"').next().unwrap().to_owned();
    }
    assert_eq!(events, 299);
    assert_eq!(web.page(&cookie, &format!("/domains/{id}/history?before=x")).await.status, 400);
}

#[tokio::test]
async fn another_tenants_domain_answers_as_an_unknown_one_on_every_page() {
    let web = Web::new(28).await;
    let (acme, _) = web.tenant("acme").await;
    let (other, _) = web.tenant("other").await;
    let theirs = web.rig.claim(&acme, "support.acme.test").await.to_string();
    let cookie = web.admin(&other).await;
    let csrf = web.csrf(&cookie).await;
    let mut walked = 0;
    for route in ROUTES.iter().filter(|route| route.path.starts_with("/domains/{id}")) {
        let mut answers = Vec::new();
        for id in [theirs.as_str(), "dom_00000000000000000000000000000000"] {
            let request: Request<Body> = web
                .browser(&cookie, &route.method.to_uppercase(), &route.path.replace("{id}", id))
                .header("content-type", "application/x-www-form-urlencoded")
                .header("origin", PUBLIC_URL)
                .body(Body::from(if route.path.ends_with("revoke") {
                    format!("csrf={csrf}&link=lnk_1")
                } else {
                    format!("csrf={csrf}")
                }))
                .unwrap();
            let answer = web.send(request).await;
            assert_eq!(answer.status, 404, "{} {}: {}", route.method, route.path, answer.body);
            let (headers, body) = answer.said();
            answers.push((headers, body.replace(id, "ID")));
        }
        assert_eq!(answers[0], answers[1], "{}", route.path);
        walked += 1;
    }
    assert_eq!(walked, 10);
    assert_eq!(web.rig.domain_text(&theirs.parse().unwrap(), "claim").await.unwrap(), "awaiting_dns");
    let principal = Principal::Tenant(other);
    assert!(!principal.may_touch(&acme));
}

#[tokio::test]
async fn a_queued_name_is_told_its_own_place_and_time_the_same_on_page_and_api() {
    let web = Web::limited(27, Limit { burst: 1, per_secs: 3_600 }).await;
    let (acme, token) = web.tenant("acme").await;
    let (other, _) = web.tenant("other").await;
    let mut ids = Vec::new();
    for (tenant, name) in [(&acme, "a.acme.test"), (&acme, "b.acme.test"), (&other, "c.acme.test"), (&acme, "d.acme.test")] {
        let id = web.rig.claim(tenant, name).await;
        web.rig.publish(&id, name).await;
        ids.push((id, name));
    }
    web.rig.pass(Duration::from_secs(1_800)).await;
    let admin = web.admin(&acme).await;
    let mut told = Vec::new();
    for (id, name) in [&ids[0], &ids[1], &ids[3]] {
        let page = web.page(&admin, &format!("/domains/{id}")).await;
        assert!(!page.body.contains("c.acme.test"), "another tenant's name in the queue");
        if web.rig.active_since(id).await.is_some() {
            assert!(!page.body.contains("id=\"turn\""), "a name that is served stands in no line");
            continue;
        }
        let story = web.api(&token, "GET", &format!("/api/v1/explain?hostname={name}"), None).await.json();
        let place = &story["claims"][0]["place"];
        let position = place["position"].as_u64().unwrap();
        let words = match position {
            0 => "ordered in the coming round".to_owned(),
            n => format!("order is number {n} in line"),
        };
        assert!(page.body.contains("id=\"turn\"") && page.body.contains(&words), "{words}: {}", page.body);
        assert!(page.body.contains(&format!("datetime=\"{}\"", place["expected_at"].as_str().unwrap())), "{place}");
        told.push(position);
    }
    told.dedup();
    assert!(told.len() >= 2, "one name an hour leaves two of three in line: {told:?}");
    let (strange, _) = &ids[2];
    assert_eq!(web.page(&admin, &format!("/domains/{strange}")).await.status, 404);
}
