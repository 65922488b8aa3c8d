//! Contacts, tokens, edges, certificates, orders, attempts, evidence, and readers that wait for events.

use std::time::Duration;

use nameplate::store::sql;
use serde_json::json;

use crate::support::web::{PUBLIC_URL, Web};

#[tokio::test]
async fn contacts_are_added_listed_and_removed() {
    let web = Web::new(91).await;
    let (_, token) = web.tenant("acme").await;
    let path = "/api/v1/tenants/acme/contacts";
    let made =
        web.api(&token, "POST", path, Some(json!({ "email": " Dns@ACME.test ", "kinds": ["domains", "domains"] }))).await;
    assert_eq!((made.status.as_u16(), &made.json()["email"]), (201, &json!("Dns@acme.test")), "{}", made.body);
    assert_eq!(made.json()["kinds"], json!(["domains"]));
    let again = web.api(&token, "POST", path, Some(json!({ "email": "Dns@acme.test" }))).await;
    assert_eq!(again.problem(), (409, "contact_refused".to_owned()));
    web.rig.hand.advance(Duration::from_secs(1));
    for n in 0..19 {
        let body = json!({ "email": format!("c{n}@acme.test") });
        let more = web.api(&web.operator, "POST", path, Some(body)).await;
        assert_eq!(more.json()["kinds"], json!(["certificates", "domains"]), "{}", more.body);
    }
    let over = web.api(&token, "POST", path, Some(json!({ "email": "over@acme.test" }))).await;
    assert_eq!(over.problem(), (409, "contact_refused".to_owned()));
    let none = web.api(&token, "POST", path, Some(json!({ "email": "x@acme.test", "kinds": [] }))).await;
    assert_eq!(none.problem(), (422, "kinds_invalid".to_owned()));

    let mut next = Some(format!("{path}?limit=8"));
    let mut seen = Vec::new();
    while let Some(path) = next {
        let page = web.api(&token, "GET", &path, None).await.json();
        seen.extend(page["items"].as_array().unwrap().iter().map(|c| c["email"].as_str().unwrap().to_owned()));
        next = page["next"].as_str().map(|url| url.strip_prefix(PUBLIC_URL).unwrap().to_owned());
    }
    assert_eq!((seen.len(), seen[0].as_str()), (20, "Dns@acme.test"));

    let one = format!("{path}/{}", made.json()["id"].as_str().unwrap());
    let gone = web.api(&token, "DELETE", &one, None).await;
    assert_eq!((gone.status.as_u16(), gone.body.as_str()), (204, ""));
    assert_eq!(web.api(&token, "DELETE", &one, None).await.problem(), (404, "contact_not_found".to_owned()));
    let told =
        web.rig.count(sql("SELECT COUNT(*) AS n FROM events WHERE kind IN ('contact_added', 'contact_removed')")).await;
    assert_eq!(told, 21);
    let leaked = web.rig.count(sql("SELECT COUNT(*) AS n FROM events WHERE detail LIKE '%@%'")).await;
    assert_eq!(leaked, 0, "history keeps no address");
}

#[tokio::test]
async fn tokens_are_shown_once_and_taken_back_at_once() {
    let web = Web::new(92).await;
    let (acme, token) = web.tenant("acme").await;
    let (_, other) = web.tenant("other").await;
    let body = json!({ "label": " deployment ", "expires_in": 3600 });
    let made = web.api(&token, "POST", "/api/v1/tokens", Some(body)).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let view = made.json();
    assert_eq!(
        (&view["label"], &view["scope"], &view["tenant_id"]),
        (&json!("deployment"), &json!("tenant"), &json!(acme.as_str()))
    );
    assert_eq!(view["expires_at"], "2027-01-15T09:00:00Z");
    let secret = view["token"].as_str().unwrap();
    assert!(secret.starts_with("npt_") && secret.len() == 47);
    assert_eq!(web.api(secret, "GET", "/api/v1/tenants/acme", None).await.status, 200);
    let one = made.header("location").strip_prefix(PUBLIC_URL).unwrap().to_owned();
    for path in [one.as_str(), "/api/v1/tokens"] {
        let shown = web.api(&web.operator, "GET", path, None).await;
        assert!(shown.body.contains(view["id"].as_str().unwrap()) && !shown.body.contains(secret), "{}", shown.body);
    }
    let of_tenant = web.api(&web.operator, "GET", "/api/v1/tokens?tenant=acme", None).await.json();
    assert_eq!(of_tenant["items"].as_array().unwrap().len(), 2);
    assert_eq!(web.api(&other, "GET", "/api/v1/tokens", None).await.json()["items"].as_array().unwrap().len(), 1);

    // What a tenant may not make, and what nobody can mean.
    let make =
        async |token: &str, body: serde_json::Value| web.api(token, "POST", "/api/v1/tokens", Some(body)).await.problem();
    assert_eq!(make(&token, json!({ "label": "x", "operator": true })).await.1, "operator_needed");
    assert_eq!(make(&token, json!({ "label": "x", "tenant": "other" })).await.1, "tenant_unknown");
    assert_eq!(make(&web.operator, json!({ "label": "x" })).await.1, "tenant_missing");
    assert_eq!(make(&web.operator, json!({ "label": "x", "operator": true, "tenant": "acme" })).await.1, "scope_unclear");
    for expires_in in [json!(0), json!(59), json!(u64::MAX)] {
        assert_eq!(make(&token, json!({ "label": "x", "expires_in": expires_in })).await.1, "expiry_out_of_range");
    }
    assert_eq!(make(&token, json!({ "label": "x", "expires_in": -1 })).await.1, "wrong_fields");
    let operator =
        web.api(&web.operator, "POST", "/api/v1/tokens", Some(json!({ "label": "ops", "operator": true }))).await.json();
    assert_eq!((&operator["scope"], &operator["tenant_id"]), (&json!("operator"), &json!(null)));

    let back = web.api(secret, "DELETE", &one, None).await;
    assert!(back.status == 200 && back.json()["revoked_at"].is_string(), "a token takes itself back: {}", back.body);
    assert_eq!(web.api(secret, "GET", "/api/v1/tenants/acme", None).await.status, 401);
    assert_eq!(web.api(&token, "DELETE", &one, None).await.problem(), (409, "token_revoked".to_owned()));
}

#[tokio::test]
async fn edges_are_shown_with_what_they_lack_and_drained() {
    let web = Web::new(93).await;
    web.rig.app.store.execute(sql("UPDATE feed SET last_seq = 12")).await.unwrap();
    web.rig.app.store.execute(sql("UPDATE edges SET cursor_seq = 9")).await.unwrap();
    let page = web.api(&web.operator, "GET", "/api/v1/edges", None).await.json();
    let edge = &page["items"][0];
    assert_eq!((&edge["name"], &edge["lag"], &edge["counted"]), (&json!("edge-1"), &json!(3), &json!(true)), "{page}");
    for secret in ["public_key", "credential"] {
        assert!(edge.get(secret).is_none());
    }
    web.rig.app.store.execute(sql("UPDATE edges SET cursor_epoch = 6")).await.unwrap();
    let other_epoch = web.api(&web.operator, "GET", "/api/v1/edges/edge-1", None).await.json();
    assert_eq!(other_epoch["lag"], json!(null));
    let drained = web.api(&web.operator, "POST", "/api/v1/edges/edge-1/drain", None).await.json();
    assert_eq!((&drained["status"], &drained["counted"]), (&json!("drained"), &json!(false)));
    assert_eq!(web.api(&web.operator, "POST", "/api/v1/edges/edge-1/drain", None).await.status, 200);
    let back = web.api(&web.operator, "POST", &format!("/api/v1/edges/{}/undrain", web.rig.edge), None).await.json();
    assert_eq!((&back["status"], &back["counted"]), (&json!("active"), &json!(true)));
    web.rig.hand.advance(Duration::from_secs(31));
    assert_eq!(web.api(&web.operator, "GET", "/api/v1/edges/edge-1", None).await.json()["counted"], json!(false));
    web.rig.app.store.execute(sql("UPDATE edges SET status = 'revoked'")).await.unwrap();
    let revoked = web.api(&web.operator, "POST", "/api/v1/edges/edge-1/undrain", None).await;
    assert_eq!(revoked.problem(), (409, "edge_revoked".to_owned()));
}

#[tokio::test]
async fn a_domain_is_followed_through_attempts_evidence_orders_and_certificates() {
    let web = Web::new(94).await;
    let (acme, token) = web.tenant("acme").await;
    let id = web.rig.claim(&acme, "support.acme.test").await;
    let attempts = web.api(&token, "GET", &format!("/api/v1/domains/{id}/attempts"), None).await.json();
    assert_eq!(attempts["items"][0]["value"], json!(web.rig.value(&id).await));
    assert_eq!((&attempts["items"][0]["proven_at"], &attempts["next"]), (&json!(null), &json!(null)));
    web.rig.publish(&id, "support.acme.test").await;
    let mut orders = 0;
    for _ in 0..400 {
        web.rig.turn().await;
        let open = web.api(&web.operator, "GET", "/api/v1/orders", None).await.json();
        if let Some(order) = open["items"].get(0) {
            assert_eq!((&order["hostname"], &order["purpose"]), (&json!("support.acme.test"), &json!("first")));
            orders += 1;
        }
        if web.rig.domain_text(&id, "claim").await.as_deref() == Some("live") {
            break;
        }
    }
    assert!(orders > 0);
    let domain = web.api(&token, "GET", &format!("/api/v1/domains/{id}"), None).await.json();
    let evidence = web.api(&token, "GET", &format!("/api/v1/domains/{id}/evidence"), None).await.json();
    assert_eq!((&evidence["items"], evidence["items"].as_array().unwrap().len()), (&domain["checks"], 4));
    let attempts = web.api(&token, "GET", &format!("/api/v1/domains/{id}/attempts"), None).await.json();
    assert!(attempts["items"][0]["proven_at"].is_string(), "{attempts}");

    let list = web.api(&token, "GET", &format!("/api/v1/certificates?domain={id}"), None).await;
    let certificate = &list.json()["items"][0];
    assert_eq!(
        (&certificate["names"], &certificate["in_use"]),
        (&json!(["support.acme.test"]), &json!(true)),
        "{}",
        list.body
    );
    assert_eq!(certificate["serial"], domain["certificate"]["serial"]);
    for secret in ["PRIVATE", "sealed_key", "chain"] {
        assert!(!list.body.contains(secret), "{}", list.body);
    }
    let path = format!("/api/v1/certificates/{}", certificate["id"].as_str().unwrap());
    assert_eq!(&web.api(&token, "GET", &path, None).await.json(), certificate);
    let end = certificate["not_after"].as_str().unwrap();
    let count = async |before: &str| {
        let path = format!("/api/v1/certificates?expires_before={before}");
        web.api(&web.operator, "GET", &path, None).await.json()["items"].as_array().unwrap().len()
    };
    assert_eq!((count(end).await, count("2099-01-01T00:00:00Z").await), (0, 1));

    // On its way out nothing has to be kept.
    assert!(domain["records"].as_array().unwrap().iter().any(|record| record["keep"] == true));
    let gone = web.api(&token, "DELETE", &format!("/api/v1/domains/{id}"), None).await.json();
    assert_eq!(gone["claim"], "releasing");
    assert!(gone["records"].as_array().unwrap().iter().all(|record| record["keep"] == false), "{gone}");
    for (claim, expected) in [("releasing", 1), ("live", 0)] {
        let list = web.api(&token, "GET", &format!("/api/v1/domains?claim={claim}"), None).await.json();
        assert_eq!(list["items"].as_array().unwrap().len(), expected, "{claim}");
    }
}

#[tokio::test]
async fn certificates_are_walked_in_order_of_their_ends() {
    let web = Web::new(95).await;
    let insert = |n: i64, end: i64| {
        sql("INSERT INTO certificates (id, source, serial, fingerprint, chain, not_before, not_after, stored_at) \
             VALUES ($1, 'import', $2, 'f', '', 0, $3, 0)")
        .bind(format!("crt_{n:032x}"))
        .bind(n.to_string())
        .bind(end)
    };
    for (n, end) in [(1, 50), (2, 10), (3, 50), (4, 10), (5, 30)] {
        web.rig.app.store.execute(insert(n, end * 1_000_000)).await.unwrap();
    }
    let mut next = Some("/api/v1/certificates?limit=2".to_owned());
    let mut serials = Vec::new();
    while let Some(path) = next {
        let page = web.api(&web.operator, "GET", &path, None).await.json();
        serials.extend(page["items"].as_array().unwrap().iter().map(|c| c["serial"].as_str().unwrap().to_owned()));
        next = page["next"].as_str().map(|url| url.strip_prefix(PUBLIC_URL).unwrap().to_owned());
    }
    assert_eq!(serials, ["2", "4", "5", "1", "3"]);
}

#[tokio::test]
async fn a_reader_of_events_waits_for_what_comes_and_not_for_ever() {
    let web = Web::new(96).await;
    let (acme, token) = web.tenant("acme").await;
    let id = web.rig.claim(&acme, "a.acme.test").await;
    let number = async |position: i64| {
        let stmt = sql("UPDATE events SET position = $1 WHERE domain_id = $2");
        web.rig.app.store.execute(stmt.bind(position).bind(id.as_str())).await.unwrap();
    };
    let path = format!("/api/v1/events?wait=20&domain={id}");
    let wait = async |after: Duration| {
        let mut passed = Duration::ZERO;
        let mut numbered = false;
        let reading = web.api(&token, "GET", &path, None);
        let clock = async {
            loop {
                tokio::task::yield_now().await;
                if passed >= after && !numbered {
                    number(7).await;
                    numbered = true;
                }
                web.rig.hand.advance(Duration::from_millis(50));
                passed += Duration::from_millis(50);
            }
        };
        let answer = tokio::select! {
            answer = reading => answer.json(),
            () = clock => unreachable!("the clock never stops"),
        };
        (answer, passed)
    };
    let (empty, passed) = wait(Duration::from_secs(3600)).await;
    assert_eq!(empty["items"], json!([]));
    assert!(passed >= Duration::from_secs(20), "{passed:?}");
    assert!(empty["next"].as_str().unwrap().contains("after=0") && empty["next"].as_str().unwrap().contains("wait=20"));
    let (found, _) = wait(Duration::from_secs(3)).await;
    assert_eq!((&found["items"][0]["kind"], &found["items"][0]["position"]), (&json!("claimed"), &json!(7)));
    let next = found["next"].as_str().unwrap().strip_prefix(PUBLIC_URL).unwrap().replace("wait=20", "wait=0");
    assert!(next.contains("after=7") && next.contains(&format!("domain={id}")), "{next}");
    assert_eq!(web.api(&token, "GET", &next, None).await.json()["items"], json!([]));
    // A process that stops answers at once those who wait, and lets nobody wait any more.
    let path = path.replace("wait=20", "after=7&wait=20");
    let stop = async {
        tokio::task::yield_now().await;
        web.live.close();
    };
    let (answer, ()) = tokio::join!(web.api(&token, "GET", &path, None), stop);
    assert_eq!((answer.status.as_u16(), &answer.json()["items"]), (200, &json!([])));
    assert_eq!(web.api(&token, "GET", &path, None).await.json()["items"], json!([]));
}
