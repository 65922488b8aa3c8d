//! Replacements of certificates over the API and on the command line: the same use case, for operators alone.

use nameplate::app::reissue;
use nameplate::sandbox::ca::Windows;
use nameplate::store::sql;
use serde_json::{Value, json};

use crate::support::renewals::{HOUR, live_names, open_orders, serials};
use crate::support::web::Web;

async fn ask(web: &Web, body: Value) -> crate::support::web::Answer {
    web.api(&web.operator, "POST", "/api/v1/reissues", Some(body)).await
}

#[tokio::test]
async fn b54_a_replacement_is_asked_for_followed_and_given_up_over_the_api() {
    let web = Web::new(90).await;
    let rig = &web.rig;
    rig.ca.windows(Windows::None);
    let names = live_names(rig, 4).await;
    let before = serials(rig, &names);
    let some: Vec<&String> = before.iter().take(2).collect();
    let dry = ask(&web, json!({ "serials": some, "dry_run": true })).await;
    assert_eq!((dry.status.as_u16(), dry.json()["certificates"].as_i64()), (200, Some(2)), "{}", dry.body);
    assert!(dry.json()["eta"].is_string());
    assert_eq!(rig.count(sql("SELECT count(*) AS n FROM reissues")).await, 0);
    let made = ask(&web, json!({ "serials": some })).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let made = (made.header("location").to_owned(), made.json());
    assert_eq!((made.1["state"].as_str(), made.1["certificates"].as_i64()), (Some("selecting"), Some(0)));
    let id = made.1["id"].as_str().unwrap();
    let path = format!("/api/v1/reissues/{id}");
    assert!(made.0.ends_with(&path), "{}", made.0);
    reissue::round(&rig.app).await.unwrap();
    let shown = web.api(&web.operator, "GET", &path, None).await.json();
    assert_eq!(
        (shown["state"].as_str(), shown["left"].as_i64(), shown["done"].as_i64()),
        (Some("under_way"), Some(2), Some(0))
    );
    assert!(shown["eta"].is_string(), "{shown}");
    rig.pass(2 * HOUR).await;
    let after = serials(rig, &names);
    assert_eq!(before.intersection(&after).count(), 2, "those that were named, and no others");
    let shown = web.api(&web.operator, "GET", &path, None).await.json();
    assert_eq!((shown["state"].as_str(), shown["done"].as_i64(), shown["eta"].is_null()), (Some("finished"), Some(2), true));
    let over = web.api(&web.operator, "POST", &format!("{path}/cancel"), None).await;
    assert_eq!(over.problem(), (409, "reissue_over".to_owned()));
    // Another, by date, which is given up before it began.
    let before_then = rig.env.now().rfc3339();
    let made = ask(&web, json!({ "before": before_then })).await.json();
    reissue::round(&rig.app).await.unwrap();
    let id = made["id"].as_str().unwrap();
    let given_up = web.api(&web.operator, "POST", &format!("/api/v1/reissues/{id}/cancel"), None).await;
    assert_eq!((given_up.status.as_u16(), given_up.json()["given_up"].as_i64()), (200, Some(4)), "{}", given_up.body);
    rig.pass(HOUR).await;
    assert_eq!((open_orders(rig).await, serials(rig, &names)), (0, after));
    let page = web.api(&web.operator, "GET", "/api/v1/reissues?limit=1", None).await.json();
    assert_eq!(page["items"][0]["id"].as_str(), Some(id), "the latest first");
    let next = page["next"].as_str().unwrap().split_once("/api/").unwrap().1.to_owned();
    let page = web.api(&web.operator, "GET", &format!("/api/{next}"), None).await.json();
    assert_eq!(page["items"][0]["state"].as_str(), Some("finished"), "{page}");
}

#[tokio::test]
async fn what_is_asked_for_must_be_clear_and_is_operators_own() {
    let web = Web::new(91).await;
    let (_, acme) = web.tenant("acme").await;
    for (body, field, code) in [
        (json!({}), "", "selection_unclear"),
        (json!({ "issuer": "main", "before": "2040-01-15T08:00:00Z" }), "", "selection_unclear"),
        (json!({ "issuer": "nobody" }), "/issuer", "issuer_unknown"),
        (json!({ "serials": [] }), "/serials", "serial_invalid"),
        (json!({ "serials": ["04ff", "no"] }), "/serials/1", "serial_invalid"),
        (json!({ "before": "tomorrow" }), "/before", "time_invalid"),
        (json!({ "issuer": "main", "urgent": true }), "", "wrong_fields"),
    ] {
        let answer = ask(&web, body.clone()).await;
        assert_eq!(answer.problem(), (422, code.to_owned()), "{body}");
        if code != "wrong_fields" {
            assert_eq!(answer.json()["errors"][0]["field"], field, "{body}");
        }
    }
    let body = Some(json!({ "issuer": "main" }));
    assert_eq!(web.api(&acme, "POST", "/api/v1/reissues", body).await.problem().1, "operator_needed");
    for path in ["/api/v1/reissues/rei_none", "/api/v1/reissues/rei_019b0000000070008000000000000001"] {
        assert_eq!(web.api(&web.operator, "GET", path, None).await.problem(), (404, "reissue_not_found".to_owned()));
        let cancel = web.api(&web.operator, "POST", &format!("{path}/cancel"), None).await;
        assert_eq!(cancel.problem(), (404, "reissue_not_found".to_owned()));
        assert_eq!(web.api(&acme, "GET", path, None).await.problem().1, "operator_needed");
    }
    assert_eq!(web.rig.count(sql("SELECT count(*) AS n FROM reissues")).await, 0);
}
