//! What people take away from an import, and what comes of it when it is sent again.

use nameplate::store::sql;
use serde_json::{Value, json};

use crate::bulk::{import, send, show, verdicts, work};
use crate::support::web::Web;

#[tokio::test]
async fn results_and_records_are_taken_away_as_files_that_execute_nothing() {
    let web = Web::new(508).await;
    let (acme, token) = web.tenant("acme").await;
    web.tenant("other").await;
    let file =
        "hostname,tenant\na.acme.test,acme\n=1+1.example,acme\n\"@SUM(1)\",acme\nb.other.test,other\nacme.test,acme\n";
    let done = import(&web, &web.operator, "", file).await;
    let id = done["id"].as_str().unwrap();
    let get = async |token: &str, what: &str| web.api(token, "GET", &format!("/api/v1/imports/{id}/{what}"), None).await;
    let results = get(&web.operator, "results").await;
    assert_eq!((results.status.as_u16(), results.header("content-type")), (200, "text/csv; charset=utf-8"));
    assert_eq!(results.header("content-disposition"), format!("attachment; filename=\"{id}-results.csv\""));
    let lines: Vec<&str> = results.body.split("\r\n").collect();
    assert_eq!((lines.len(), lines[0]), (7, "line,hostname,tenant,method,verdict,code,detail,suggestion,domain_id"));
    assert!(lines[1].starts_with("2,a.acme.test,acme,,claimed,,,,dom_"), "{}", lines[1]);
    assert!(
        lines[2].starts_with("3,\"'=1+1.example\",acme,,refused,") && lines[3].contains("\"'@SUM(1)\""),
        "{}",
        results.body
    );
    // Sent back as it is, nothing happens twice.
    let again = import(&web, &web.operator, "", &results.body).await;
    assert_eq!((&again["verdicts"]["already_yours"], &again["verdicts"]["refused"]), (&json!(3), &json!(2)));
    let ndjson = get(&web.operator, "results?format=ndjson&verdict=refused").await;
    let rows: Vec<Value> = ndjson.body.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((rows.len(), &rows[0]["line"], &rows[0]["hostname"]), (2, &json!(3), &json!("=1+1.example")));
    let sent = send(&web, &web.operator, "", "application/x-ndjson", ndjson.body.clone()).await;
    assert_eq!(sent.status, 201, "{}", sent.body);

    let zone = get(&web.operator, "records").await;
    assert_eq!(zone.header("content-type"), "text/dns; charset=utf-8");
    let of = |name: &str| {
        web.rig.app.store.query(
            sql("SELECT a.value FROM domains d JOIN attempts a ON a.id = d.attempt_id WHERE d.hostname = $1").bind(name),
        )
    };
    let value = of("a.acme.test").await.unwrap()[0].text("value").unwrap();
    for line in [
        format!("_nameplate-challenge.a.acme.test. 300 IN TXT \"{value}\""),
        "a.acme.test. 300 IN CNAME acme.app.example.".to_owned(),
        "b.other.test. 300 IN CNAME other.app.example.".to_owned(),
        "acme.test. 300 IN A 192.0.2.80".to_owned(),
    ] {
        assert!(zone.body.lines().any(|seen| seen == line), "{line} in {}", zone.body);
    }
    // Every line of the file is one that a zone takes.
    for line in zone.body.lines().filter(|line| !line.starts_with([';', '$'])) {
        web.rig.zones.add(&line.replace(" 300 ", " 60 ")).unwrap_or_else(|e| panic!("{line}: {e}"));
    }
    let csv = get(&web.operator, "records?format=csv&tenant=acme").await;
    assert_eq!(csv.body.lines().next(), Some("hostname,tenant,zone,name,type,value,ttl,keep"));
    assert!(
        csv.body.contains("a.acme.test,acme,acme.test,a.acme.test,CNAME,acme.app.example,300,yes")
            && !csv.body.contains("other"),
        "{}",
        csv.body
    );
    for (what, code) in [
        ("results?format=xlsx", "format_invalid"),
        ("results?verdict=x", "verdict_invalid"),
        ("records?format=x", "format_invalid"),
        ("records?tenant=nobody", "tenant_unknown"),
    ] {
        assert_eq!(get(&web.operator, what).await.problem(), (422, code.into()), "{what}");
    }
    assert_eq!(get(&token, "results").await.problem(), (404, "import_not_found".into()));
    web.rig.claim(&acme, "later.acme.test").await;
}

#[tokio::test]
async fn long_files_are_written_in_parts_and_come_whole() {
    let web = Web::new(509).await;
    let (_, token) = web.tenant("acme").await;
    let names: Vec<String> = (0..1_250).map(|n| format!("n{n}.acme.test")).collect();
    let done = import(&web, &token, "", &format!("hostname\n{}\n", names.join("\n"))).await;
    let id = done["id"].as_str().unwrap();
    let results = web.api(&token, "GET", &format!("/api/v1/imports/{id}/results"), None).await;
    let read: Vec<&str> = results.body.lines().skip(1).map(|line| line.split(',').nth(1).unwrap()).collect();
    assert_eq!(read, names);
    let records = web.api(&token, "GET", &format!("/api/v1/imports/{id}/records?format=csv"), None).await;
    assert_eq!(records.body.lines().count(), 1 + 2 * names.len());
}

/// `verdict code` of every row of an import that is sent as it is.
async fn sent_as_it_is(web: &Web, question: &str, kind: &str, file: &str) -> (Value, Vec<String>) {
    let sent = send(web, &web.operator, question, kind, file.to_owned()).await;
    assert_eq!(sent.status, 201, "{}", sent.body);
    work(web).await;
    let done = show(web, &web.operator, sent.json()["id"].as_str().unwrap()).await;
    let rows = verdicts(web, &web.operator, &done["id"]).await;
    let said = rows.iter().map(|row| row.split_once(' ').unwrap().1.to_owned()).collect();
    (done["id"].clone(), said)
}

#[tokio::test]
async fn a_result_file_that_is_sent_again_changes_nothing_whatever_its_rows_were() {
    let csv = "hostname,tenant,method\na.acme.test,acme,http-01\nb.acme.test,acme,dns-01\nc.acme.test,acme,HTTP-01\n\
               d.acme.test,acme,=cmd\ne.acme.test,acme,\"dns-01,http-01\"\nf.acme.test,acme,http-01\u{200b}\n\
               g.acme.test;acme\nh.acme.test,acme,,more\n\"i.acme.test\na.acme.test,acme,\nj.acme.test,nobody,\n\
               '=k.acme.test,acme,\nl.acme.test,ac\u{200b}me,\n";
    let ndjson = "{\"hostname\":\"a.acme.test\",\"tenant\":\"acme\",\"method\":\"http-01\"}\nb.acme.test\n\
                  {\"hostname\":\"c.acme.test\",\"tenant\":\"acme\",\"method\":\"dns-01\"}\n{\"hostname\":7}\n\
                  {\"hostname\":\"d.acme.test\",\"upstream\":\"x\"}\n\"e.acme.test\"\n";
    for (n, (kind, format, file)) in
        [("text/csv", "csv", csv), ("application/x-ndjson", "ndjson", ndjson)].into_iter().enumerate()
    {
        let web = Web::new(590 + u64::try_from(n).unwrap()).await;
        web.tenant("acme").await;
        // Rows that name nobody are acme's: what was refused for its method or its form alone must stay so.
        let question = "?tenant=acme";
        let (mut id, first) = sent_as_it_is(&web, question, kind, file).await;
        assert!(first.iter().filter(|row| row.starts_with("refused")).count() >= 4, "{first:?}");
        let claims = web.rig.count(sql("SELECT count(*) AS n FROM domains")).await;
        for (as_kind, as_format) in [(kind, format), ("text/csv", "csv"), ("application/x-ndjson", "ndjson")] {
            let path = format!("/api/v1/imports/{}/results?format={as_format}", id.as_str().unwrap());
            let taken = web.api(&web.operator, "GET", &path, None).await;
            let (next, again) = sent_as_it_is(&web, question, as_kind, &taken.body).await;
            let verdict = |row: &String| row.split(' ').next().unwrap().replace("claimed", "already_yours");
            let (was, is): (Vec<String>, Vec<String>) =
                (first.iter().map(verdict).collect(), again.iter().map(verdict).collect());
            assert_eq!(is, was, "{format} as {as_format}: {}", taken.body);
            assert_eq!(web.rig.count(sql("SELECT count(*) AS n FROM domains")).await, claims, "{}", taken.body);
            id = next;
        }
    }
}
