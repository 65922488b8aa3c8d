//! Imports on the pages: a file sent by a form, followed, turned and taken away.

use std::time::Duration;

use axum::body::Body;
use futures::StreamExt as _;
use nameplate::app::bulk;
use nameplate::store::sql;
use serde_json::json;
use tower::ServiceExt as _;

use super::bulk::{import, work};
use crate::support::web::{Answer, PUBLIC_URL, Web};

const BOUNDARY: &str = "----nameplate-test";

/// A form with a file, as browsers send it.
fn form(fields: &[(&str, &str)], name: &str, file: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    for (field, value) in fields {
        body.extend(format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{field}\"\r\n\r\n{value}\r\n").bytes());
    }
    body.extend(
        format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\
             Content-Type: application/octet-stream\r\n\r\n"
        )
        .bytes(),
    );
    body.extend(file);
    body.extend(format!("\r\n--{BOUNDARY}--\r\n").bytes());
    body
}

async fn post(web: &Web, cookie: &str, origin: &str, body: Vec<u8>) -> Answer {
    let request = web
        .browser(cookie, "POST", "/imports")
        .header("origin", origin)
        .header("content-type", format!("multipart/form-data; boundary={BOUNDARY}"));
    web.send(request.body(Body::from(body)).unwrap()).await
}

/// The path that an answer leads on to.
fn led_to(answer: &Answer) -> String {
    assert_eq!(answer.status, 303, "{}", answer.body);
    answer.header("location").strip_prefix(PUBLIC_URL).unwrap().to_owned()
}

#[tokio::test]
async fn an_admin_checks_a_file_claims_its_names_and_takes_the_records_away() {
    let web = Web::new(541).await;
    let (acme, _) = web.tenant("acme").await;
    let admin = web.admin(&acme).await;
    let empty = web.page(&admin, "/imports").await;
    assert!(empty.status == 200 && empty.body.contains("type=\"file\"") && !empty.body.contains("Tenant of the rows"));
    let csrf = empty.csrf();
    let mut file = b"hostname\r\na.acme.test\r\n<script>x</script>.acme.test\r\n".to_vec();
    for n in 0..400 {
        file.extend(format!("n{n}.acme.test\r\n").bytes());
    }
    let sent = post(&web, &admin, PUBLIC_URL, form(&[("csrf", &csrf), ("mode", "check")], "names <b>.csv", &file)).await;
    let path = led_to(&sent);
    let arriving = web.page(&admin, &path).await;
    assert!(
        arriving.body.contains("Being checked") && arriving.body.contains("name=\"to\" value=\"pause\""),
        "{}",
        arriving.body
    );
    let live = arriving.body.split("data-live=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let request = web.browser(&admin, "GET", &live).body(Body::empty()).unwrap();
    let mut stream = web.router.clone().oneshot(request).await.unwrap().into_body().into_data_stream();
    assert_eq!(stream.next().await.unwrap().unwrap(), "retry: 5000\n\n");
    assert!(bulk::round(&web.rig.app).await.unwrap().is_some());
    let told = async {
        while web.rig.hand.next_wake().is_none() {
            tokio::task::yield_now().await;
        }
        web.rig.hand.advance(Duration::from_secs(1));
    };
    let (said, ()) = tokio::join!(stream.next(), told);
    assert_eq!(said.unwrap().unwrap(), "event: changed\ndata: {}\n\n");
    work(&web).await;
    let checked = web.page(&admin, &path).await;
    for text in [
        "Nothing was claimed: this was a check. 401 names would be claimed. 1 row was not taken",
        "Line 3",
        "names &#60;b&#62;.csv",
        "Claim these names now",
    ] {
        assert!(checked.body.contains(text), "{text} in {}", checked.body);
    }
    assert!(!checked.body.contains("<script>x") && checked.body.contains("<svg"), "{}", checked.body);
    let turned = web.post(&admin, &format!("{path}/turn"), &format!("csrf={csrf}&to=start")).await;
    assert_eq!(led_to(&turned), path);
    work(&web).await;
    let done = web.page(&admin, &path).await;
    assert!(done.body.contains("401 names are claimed") && done.body.contains("Records as a zone file"), "{}", done.body);
    assert!(done.body.len() < 60_000, "{}", done.body.len());
    let zone = web.page(&admin, &format!("{path}/records?format=zone")).await;
    assert!(zone.status == 200 && zone.body.contains("a.acme.test. 300 IN CNAME acme.app.example."));
    let results = web.page(&admin, &format!("{path}/results?format=csv&verdict=refused")).await;
    assert_eq!((results.status.as_u16(), results.body.lines().count()), (200, 2));
    let list = web.page(&admin, "/imports").await;
    assert!(list.body.contains("names &#60;b&#62;.csv") && list.body.contains("Imported"), "{}", list.body);
}

#[tokio::test]
async fn a_form_is_taken_from_our_page_only_and_a_bad_file_comes_back_with_its_fault() {
    let web = Web::new(542).await;
    let (acme, _) = web.tenant("acme").await;
    let (other, _) = web.tenant("other").await;
    let admin = web.admin(&acme).await;
    let csrf = web.csrf(&admin).await;
    let file = b"hostname\na.acme.test\n";
    let good = || form(&[("csrf", &csrf)], "a.csv", file);
    for (cookie, origin, body, status) in [
        (&*admin, "https://evil.example", good(), 403),
        (&*admin, PUBLIC_URL, form(&[("csrf", "00")], "a.csv", file), 403),
        (&*admin, PUBLIC_URL, form(&[], "a.csv", file), 403),
        ("", PUBLIC_URL, good(), 401),
    ] {
        assert_eq!(post(&web, cookie, origin, body).await.status, status);
    }
    let theirs = web.csrf(&web.admin(&other).await).await;
    assert_eq!(post(&web, &admin, PUBLIC_URL, form(&[("csrf", &theirs)], "a.csv", file)).await.status, 403);
    for (name, file, said) in [
        ("a.csv", &b"no header here\n"[..], "must name the columns"),
        ("a.csv", b"hostname,upstream\na.acme.test,10.0.0.1\n", "operator&#39;s configuration"),
        ("", b"", "Choose a file."),
        ("a.xlsx", b"PK\x03\x04........", "workbook"),
        ("a.ndjson", b"hostname\na.acme.test\n", "no JSON object"),
    ] {
        let answer = post(&web, &admin, PUBLIC_URL, form(&[("csrf", &csrf), ("mode", "import")], name, file)).await;
        assert_eq!(answer.status, 422, "{}", answer.body);
        assert!(answer.body.contains(said) && answer.body.contains("role=\"alert\""), "{said} in {}", answer.body);
    }
    let plain = web.post(&admin, "/imports", &format!("csrf={csrf}")).await;
    assert_eq!(plain.status, 415);
    work(&web).await;
    assert_eq!(web.rig.count(sql("SELECT count(*) AS n FROM imports")).await, 0);
    assert_eq!(web.rig.count(sql("SELECT count(*) AS n FROM import_rows")).await, 0);
}

#[tokio::test]
async fn operators_import_for_everybody_and_a_tenants_file_cannot_choose_another() {
    let web = Web::new(543).await;
    let (acme, token) = web.tenant("acme").await;
    let operator = web.signed_in_operator().await;
    let csrf = web.page(&operator, "/imports").await.csrf();
    let fields = [("csrf", &*csrf), ("tenant", "acme"), ("create", "yes"), ("mode", "import")];
    let file = b"{\"hostname\":\"a.acme.test\"}\n{\"hostname\":\"b.fresh.test\",\"tenant\":\"fresh\"}\n";
    let path = led_to(&post(&web, &operator, PUBLIC_URL, form(&fields, "a.jsonl", file)).await);
    work(&web).await;
    let page = web.page(&operator, &path).await;
    assert!(page.body.contains("2 names are claimed"), "{}", page.body);
    assert_eq!(web.rig.count(sql("SELECT count(*) AS n FROM tenants")).await, 2);
    let unknown = [("csrf", &*csrf), ("tenant", "nobody"), ("mode", "import")];
    let answer = post(&web, &operator, PUBLIC_URL, form(&unknown, "a.csv", b"hostname\na.acme.test\n")).await;
    assert!(answer.status == 422 && answer.body.contains("There is no tenant with this id or slug."), "{}", answer.body);
    // What an admin's form says of tenants counts for nothing.
    let admin = web.admin(&acme).await;
    let csrf = web.csrf(&admin).await;
    let fields = [("csrf", &*csrf), ("tenant", "fresh"), ("create", "yes"), ("mode", "import")];
    led_to(
        &post(&web, &admin, PUBLIC_URL, form(&fields, "a.csv", b"hostname,tenant\nc.acme.test,\nd.acme.test,made\n")).await,
    );
    work(&web).await;
    let rows = web.rig.app.store.query(sql("SELECT tenant_id FROM domains WHERE hostname = 'c.acme.test'")).await.unwrap();
    assert_eq!(rows[0].text("tenant_id").unwrap(), acme.to_string());
    assert_eq!(web.rig.count(sql("SELECT count(*) AS n FROM tenants")).await, 2, "an admin adds no tenants");
    // Another's import is no import.
    let done = import(&web, &token, "", "hostname\ne.acme.test\n").await;
    let (other, _) = web.tenant("other").await;
    let stranger = web.admin(&other).await;
    for path in [path, format!("/imports/{}", done["id"].as_str().unwrap())] {
        assert_eq!(web.page(&stranger, &path).await.status, 404);
        assert_eq!(web.page(&stranger, &format!("{path}/live")).await.status, 404);
    }
    assert_eq!(done["verdicts"]["claimed"], json!(1));
}

/// What is one of something is said so.
#[tokio::test]
async fn one_of_something_is_not_said_to_be_many() {
    let web = Web::new(549).await;
    let (acme, token) = web.tenant("acme").await;
    let admin = web.admin(&acme).await;
    for (names, said) in [
        (&["a.acme.test"][..], ["1 name would be claimed.", "1 certificate to order."]),
        (
            &["a.acme.test", "b.acme.test"],
            ["2 names would be claimed.", "2 certificates to order for names under 1 registered domain."],
        ),
        (
            &["a.acme.test", "b.beta.test"],
            ["2 names would be claimed.", "2 certificates to order for names under 2 registered domains."],
        ),
    ] {
        let dry = import(&web, &token, "?dry_run=true", &format!("hostname\n{}\n", names.join("\n"))).await;
        let page = web.page(&admin, &format!("/imports/{}", dry["id"].as_str().unwrap())).await.body;
        assert!(said.iter().all(|text| page.contains(text)), "{names:?}: {page}");
        for many in ["names", "certificates", "registered domains", "rows", "orders"] {
            assert!(
                !page.contains(&format!(" 1 {many}")) && !page.contains(&format!(">1 {many}")),
                "{names:?} {many}: {page}"
            );
        }
    }
}
