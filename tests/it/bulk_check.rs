//! "Check this import now": who may ask, how often, in which lane, and what the page says until then.

use std::time::Duration;

use nameplate::model::ledger::Limit;
use nameplate::store::sql;
use serde_json::{Value, json};

use crate::bulk::{import, show};
use crate::support::web::Web;

const HOUR: Duration = Duration::from_secs(3_600);

#[tokio::test]
async fn an_import_is_checked_at_once_in_its_own_lane_and_no_more_than_once_a_minute() {
    let web = Web::new(571).await;
    let (acme, token) = web.tenant("acme").await;
    let (_, other) = web.tenant("other").await;
    let names: Vec<String> = (0..30).map(|n| format!("n{n}.acme.test")).collect();
    let done = import(&web, &token, "?name=names.csv", &format!("hostname\n{}\n", names.join("\n"))).await;
    let id = done["id"].as_str().unwrap().to_owned();
    web.rig.pass(Duration::from_secs(300)).await;
    // Everybody has been looked at, and waits an hour: the page says so, with the time.
    let waits = show(&web, &token, &id).await;
    let next = waits["next_look_at"].as_str().unwrap().to_owned();
    assert!(next > (web.rig.env.now() + HOUR / 2).rfc3339(), "{next}");
    let admin = web.admin(&acme).await;
    let page = web.page(&admin, &format!("/imports/{id}")).await;
    assert!(
        page.body.contains("The next of them is looked at in ") && page.body.contains("about once an hour"),
        "{}",
        page.body
    );
    let rows_of = format!("href=\"/imports/{id}/claims?state=awaiting_dns\">30</a>");
    assert!(page.body.contains(&rows_of), "{}", page.body);
    let path = format!("/api/v1/imports/{id}/check");
    assert_eq!(web.api(&other, "POST", &path, None).await.problem(), (404, "import_not_found".into()));
    let csrf = page.csrf();
    assert_eq!(web.post(&admin, &format!("/imports/{id}/check"), "csrf=00").await.status, 403);
    let sent = web.post(&admin, &format!("/imports/{id}/check"), &format!("csrf={csrf}")).await;
    assert_eq!(sent.status, 303, "{}", sent.body);
    let asked = web.page(&admin, &format!("/imports/{id}?asked=1")).await;
    assert!(asked.body.contains("is looked at now, one after the other"), "{}", asked.body);
    // Spread as first looks are, in the lane of imports: nobody who asks for one name waits behind them.
    let spread = web.rig.app.store.query(sql("SELECT max(due_at) - min(due_at) AS spread FROM domains")).await.unwrap();
    assert_eq!(spread[0].int("spread").unwrap(), 29 * 100_000, "ten a second");
    let by = sql("SELECT count(*) AS n FROM domains WHERE check_asked_by = 'import' AND lane = 'bulk'");
    assert_eq!(web.rig.count(by).await, 30);
    let again = web.api(&token, "POST", &path, None).await;
    assert!(again.header("retry-after").parse::<u64>().unwrap() <= 60, "{}", again.body);
    assert_eq!(again.problem(), (429, "too_soon".into()));
    web.rig.pass(Duration::from_secs(70)).await;
    let looked = sql("SELECT count(*) AS n FROM events WHERE kind = 'check_asked' AND actor = 'import'");
    assert_eq!(web.rig.count(looked.clone()).await, 30);
    let checked = web.api(&token, "POST", &path, None).await;
    assert_eq!((checked.status.as_u16(), &checked.json()["names"]), (202, &json!(30)), "{}", checked.body);
    // Where nothing waits there is nothing to check, and no button.
    for name in &names {
        let row =
            web.rig.app.store.query(sql("SELECT id FROM domains WHERE hostname = $1").bind(name.as_str())).await.unwrap();
        web.rig.publish(&row[0].parse("id").unwrap(), name).await;
    }
    web.rig.pass(Duration::from_secs(3_700)).await;
    let page = web.page(&web.admin(&acme).await, &format!("/imports/{id}")).await;
    assert!(!page.body.contains("check-import"), "{}", page.body);
    assert_eq!(web.api(&token, "POST", &path, None).await.problem(), (409, "nothing_to_check".into()));
    assert_eq!(show(&web, &token, &id).await["next_look_at"], Value::Null);
    web.rig.check_invariants().await;
}

#[tokio::test]
async fn the_claims_of_an_import_are_listed_by_state_a_page_at_a_time_and_are_nobody_elses() {
    let web = Web::new(572).await;
    let (acme, token) = web.tenant("acme").await;
    let (other, _) = web.tenant("other").await;
    let names: Vec<String> = (0..120).map(|n| format!("n{n:03}.acme.test")).collect();
    let done = import(&web, &token, "", &format!("hostname\n{}\n", names.join("\n"))).await;
    let (admin, stranger) = (web.admin(&acme).await, web.admin(&other).await);
    let path = format!("/imports/{}/claims?state=awaiting_dns", done["id"].as_str().unwrap());
    let (mut at, mut seen) = (path.clone(), Vec::new());
    for pages in 1.. {
        let page = web.page(&admin, &at).await;
        assert_eq!(page.status, 200, "{}", page.body);
        seen.extend(names.iter().filter(|name| page.body.contains(&format!("<bdi>{name}</bdi>"))).cloned());
        assert!(page.body.contains("badge wait") && !page.body.contains("badge act"), "a young claim is no alarm");
        let Some(next) = page.body.split("rel=\"next\"").next().filter(|_| page.body.contains("rel=\"next\"")) else {
            assert_eq!(pages, 3);
            break;
        };
        at = next.rsplit("href=\"").next().unwrap().split('"').next().unwrap().replace("&amp;", "&").replace("&#38;", "&");
    }
    seen.sort();
    assert_eq!(seen, names);
    assert_eq!(web.page(&stranger, &path).await.status, 404);
    for wrong in ["?state=x", "", "?state=awaiting_dns&after=x", "?state=live&more=1"] {
        let answer = web.page(&admin, &format!("/imports/{}/claims{wrong}", done["id"].as_str().unwrap())).await;
        assert!(answer.status.is_client_error(), "{wrong}: {}", answer.status);
    }
    let none = web.page(&admin, &path.replace("awaiting_dns", "live")).await;
    assert!(none.body.contains("No name of this import stands here now."), "{}", none.body);
}

#[tokio::test]
async fn a_plan_whose_time_is_over_says_what_was() {
    let web = Web::limited(573, Limit { burst: 1, per_secs: 3_600 }).await;
    let (acme, token) = web.tenant("acme").await;
    let done = import(&web, &token, "", "hostname\na.acme.test\nb.acme.test\nc.acme.test\n").await;
    let path = format!("/imports/{}", done["id"].as_str().unwrap());
    let page = web.page(&web.admin(&acme).await, &path).await.body;
    assert!(page.contains("What the limits make of it") && page.contains("the last is ordered in "), "{page}");
    web.rig.pass(4 * HOUR).await;
    let page = web.page(&web.admin(&acme).await, &path).await.body;
    assert!(page.contains("What the limits made of it") && page.contains("The last was to be ordered at "), "{page}");
    assert!(!page.contains("the last is ordered") && page.contains("Live now: 0."), "{page}");
    // One that was given up plans nothing any more, whatever the time.
    let later = import(&web, &token, "", "hostname\nd.acme.test\ne.acme.test\nf.acme.test\n").await;
    let id = later["id"].as_str().unwrap();
    assert_eq!(web.api(&token, "POST", &format!("/api/v1/imports/{id}/cancel"), None).await.status, 200);
    let page = web.page(&web.admin(&acme).await, &format!("/imports/{id}")).await.body;
    assert!(page.contains("What the limits made of it") && !page.contains("the last is ordered"), "{page}");
    assert!(
        page.contains("Cancelled by the tenant") && page.contains("Nothing is ordered any more for its 3 claims"),
        "{page}"
    );
}
