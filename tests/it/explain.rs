//! The whole story of one name: to an operator all of it, to a tenant its own.

use std::time::Duration;

use nameplate::model::ledger::Limit;
use serde_json::json;

use crate::support::web::Web;

const PATH: &str = "/api/v1/explain?hostname=";

#[tokio::test]
async fn a_tenant_hears_of_its_own_claims_only() {
    let web = Web::new(61).await;
    let (acme, acme_token) = web.tenant("acme").await;
    let (other, other_token) = web.tenant("other").await;
    let (_, third_token) = web.tenant("third").await;
    let held = web.rig.claim(&acme, "support.acme.test").await;
    web.rig.publish(&held, "support.acme.test").await;
    web.rig.until_active(&held, Duration::from_secs(3600)).await;
    let wanted = web.rig.claim(&other, "support.acme.test").await;
    let own = web.api(&acme_token, "GET", &format!("{PATH}SUPPORT.acme.test."), None).await;
    assert_eq!(own.status, 200, "{}", own.body);
    let own = own.json();
    assert_eq!((&own["holding"]["state"], &own["holding"]["tenant"]), (&json!("held"), &json!("acme")));
    assert_eq!(own["claims"].as_array().unwrap().len(), 1);
    let story = &own["claims"][0];
    assert_eq!((&story["standing"]["code"], &story["standing"]["who_acts"]), (&json!("serving"), &json!("nobody")));
    assert_eq!((&story["edges"][0]["has_it"], &story["orders"][0]["state"]), (&json!(true), &json!("issued")));
    assert!(story.get("inside").is_none() && story["domain"]["id"] == json!(held));
    let theirs = web.api(&other_token, "GET", &format!("{PATH}support.acme.test"), None).await;
    let text = &theirs.body;
    assert!(!text.contains(held.as_str()) && !text.contains(acme.as_str()) && !text.contains("\"acme\""), "{text}");
    assert_eq!(theirs.json()["holding"], json!(null));
    assert_eq!(theirs.json()["claims"][0]["domain"]["id"], json!(wanted));
    // Somebody else's name is as one that nobody claims.
    let strange = web.api(&third_token, "GET", &format!("{PATH}support.acme.test"), None).await;
    let nobody = web.api(&third_token, "GET", &format!("{PATH}nobody.acme.test"), None).await;
    assert_eq!(strange.problem(), (404, "claim_not_found".to_owned()));
    assert_eq!(strange.said(), nobody.said());
    let all = web.api(&web.operator, "GET", &format!("{PATH}support.acme.test"), None).await.json();
    assert_eq!(all["claims"].as_array().unwrap().len(), 2);
    // Both are open; the latest comes first.
    assert_eq!(all["claims"][0]["domain"]["id"], json!(wanted));
    assert!(all["claims"][1]["inside"]["generation"].as_i64().unwrap() > 3);
}

#[tokio::test]
async fn every_state_says_what_happens_next() {
    let web = Web::new(62).await;
    let (acme, _) = web.tenant("acme").await;
    let operator = web.operator.clone();
    let next = async |web: &Web, name: &str| -> String {
        let told = web.api(&operator, "GET", &format!("{PATH}{name}"), None).await;
        assert_eq!(told.status, 200, "{}", told.body);
        let lines = told.json()["claims"][0]["next"].as_array().unwrap().clone();
        lines.iter().map(|l| l.as_str().unwrap()).collect::<Vec<_>>().join(" ")
    };
    let id = web.rig.claim(&acme, "a.acme.test").await;
    assert!(next(&web, "a.acme.test").await.contains("A look at DNS is due now."));
    web.rig.turn().await;
    let said = next(&web, "a.acme.test").await;
    assert!(said.contains("The next look at DNS is due at") && said.contains("the attempt ends"), "{said}");
    web.rig.publish(&id, "a.acme.test").await;
    web.rig.until_active(&id, Duration::from_secs(3600)).await;
    assert!(next(&web, "a.acme.test").await.contains("The certificate lasts until"));
    nameplate::app::remove::remove(&web.rig.app, &id, "tenant").await.unwrap();
    assert!(next(&web, "a.acme.test").await.contains("Key and certificate are kept until"));
    web.rig.hand.advance(Duration::from_secs(8 * 86_400));
    web.rig.pass(Duration::from_secs(30)).await;
    assert!(next(&web, "a.acme.test").await.contains("Nothing more happens."));
    let late = web.rig.claim(&acme, "b.acme.test").await;
    web.rig.hand.advance(Duration::from_secs(31 * 86_400));
    web.rig.pass(Duration::from_secs(30)).await;
    assert_eq!(web.rig.domain_text(&late, "claim").await.as_deref(), Some("expired"));
    assert!(next(&web, "b.acme.test").await.contains("until the name is claimed again"));
}

#[tokio::test]
async fn a_queued_name_is_told_its_position_and_time() {
    let web = Web::limited(63, Limit { burst: 1, per_secs: 600 }).await;
    let (acme, token) = web.tenant("acme").await;
    for n in 0..4 {
        let name = format!("n{n}.acme.test");
        let id = web.rig.claim(&acme, &name).await;
        web.rig.publish(&id, &name).await;
    }
    web.rig.pass(Duration::from_secs(20)).await;
    let mut positions = Vec::new();
    for n in 0..4 {
        let told = web.api(&token, "GET", &format!("{PATH}n{n}.acme.test"), None).await.json();
        let story = &told["claims"][0];
        if story["place"].is_object() {
            let next = story["next"][0].as_str().unwrap();
            let position = story["place"]["position"].as_u64().unwrap();
            assert!(next.contains(&format!("number {position} of 3")), "{next}");
            assert!(next.contains(story["place"]["expected_at"].as_str().unwrap()), "{next}");
            positions.push(position);
        }
    }
    positions.sort_unstable();
    assert_eq!(positions, [1, 2, 3]);
}

#[tokio::test]
async fn what_is_no_hostname_is_refused_in_words() {
    let web = Web::new(64).await;
    for asked in ["", "a%20b", "localhost", "%00", "app.example", "%3Cscript%3E"] {
        let answer = web.api(&web.operator, "GET", &format!("{PATH}{asked}"), None).await;
        assert_eq!(answer.problem().0, 422, "{asked}");
    }
    assert_eq!(web.api(&web.operator, "GET", "/api/v1/explain", None).await.problem().0, 400);
    assert_eq!(web.api(&web.operator, "GET", "/api/v1/explain?hostname=a.test&x=1", None).await.problem().0, 400);
}
