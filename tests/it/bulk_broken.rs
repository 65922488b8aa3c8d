//! Imports that go wrong: files that are none, uploads that break off, processes that die, and files sent again.

use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::Request;
use futures::{StreamExt as _, stream};
use nameplate::app::bulk;
use nameplate::app::tokens::{Caller, Principal};
use nameplate::model::bulk::Format;
use nameplate::model::hostname::NameRules;
use nameplate::model::id::TokenId;
use nameplate::store::sql;
use serde_json::{Value, json};

use super::bulk::{import, send, send_keyed, show, verdicts, work};
use crate::support::rig::Rig;
use crate::support::stores::{Kind, TestStore, until};
use crate::support::web::{Answer, PUBLIC_URL, Web};

async fn count(web: &Web, what: &'static str) -> i64 {
    web.rig.count(sql(what)).await
}

/// Nothing of any file is left.
async fn nothing_stays(web: &Web, when: &str) {
    work(web).await;
    for what in
        ["SELECT count(*) AS n FROM imports", "SELECT count(*) AS n FROM import_rows", "SELECT count(*) AS n FROM domains"]
    {
        assert_eq!(count(web, what).await, 0, "{when}: {what}");
    }
}

fn names(n: usize) -> String {
    let all: Vec<String> = (0..n).map(|n| format!("n{n}.acme.test")).collect();
    format!("hostname\n{}\n", all.join("\n"))
}

#[tokio::test]
async fn b76_a_file_that_is_none_is_refused_whole_with_its_line() {
    let web = Web::new(521).await;
    let (_, token) = web.tenant("acme").await;
    let utf16: Vec<u8> = "\u{feff}hostname\na.acme.test\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let mut latin = names(1_200).into_bytes();
    latin.extend_from_slice(b"b\xfccher.acme.test\n");
    let files: Vec<(&str, Vec<u8>, &str, &str)> = vec![
        ("text/csv", utf16, "file_not_utf8", "line 1"),
        ("text/csv", latin, "file_not_utf8", "line 1202"),
        ("text/csv", b"a.acme.test\nb.acme.test\n".to_vec(), "header_missing", "line 1"),
        ("text/csv", b"hostname|tenant\na.acme.test|acme\n".to_vec(), "header_missing", "line 1"),
        ("text/csv", b"hostname,upstream\na.acme.test,10.0.0.1:80\n".to_vec(), "column_refused", "line 1"),
        ("text/csv", b"hostname,colour\na.acme.test,red\n".to_vec(), "column_unknown", "line 1"),
        ("text/csv", Vec::new(), "file_empty", "file"),
        ("text/csv", vec![b'x'; 10_000_000], "header_missing", "line 1"),
        ("application/x-ndjson", b"hostname\na.acme.test\n".to_vec(), "not_ndjson", "line 1"),
    ];
    for (kind, file, code, field) in files {
        let answer = send(&web, &token, "", kind, file).await;
        assert_eq!(answer.problem(), (422, code.into()));
        assert_eq!(answer.json()["errors"][0]["field"], field, "{}", answer.body);
        nothing_stays(&web, code).await;
    }
    for kind in ["application/json", "text/plain", "", "text/csv; charset=iso-8859-1"] {
        assert_eq!(send(&web, &token, "", kind, names(1)).await.problem(), (415, "not_a_list".into()), "{kind}");
    }
}

#[tokio::test]
async fn files_have_a_size_and_senders_a_number() {
    let web = Web::configured(522, "[imports]\nmax_rows = 600\nmax_bytes = 40000\n").await;
    let (_, token) = web.tenant("acme").await;
    let answer = send(&web, &token, "", "text/csv", names(601)).await;
    assert_eq!(answer.problem(), (422, "too_many_rows".into()));
    assert_eq!(answer.json()["errors"][0]["field"], "line 602");
    let long = format!("hostname\n{}\n", "x".repeat(50_000));
    assert_eq!(send(&web, &token, "", "text/csv", long).await.problem(), (413, "file_too_large".into()));
    nothing_stays(&web, "too large").await;
    for n in 0..20 {
        assert_eq!(send(&web, &token, "", "text/csv", format!("hostname\nn{n}.acme.test\n")).await.status, 201);
    }
    assert_eq!(send(&web, &token, "", "text/csv", names(1)).await.problem(), (409, "too_many_imports".into()));
    assert_eq!(send(&web, &web.operator, "?tenant=acme", "text/csv", names(1)).await.status, 201, "others are not held up");
    work(&web).await;
    assert_eq!(send(&web, &token, "", "text/csv", names(1)).await.status, 201);
}

/// Whoever closes a connection on somebody who still sends takes the answer away with it.
#[tokio::test]
async fn what_is_refused_is_read_to_its_end_so_that_its_sender_hears_why() {
    let web = Web::configured(532, "[imports]\nmax_bytes = 40000\n").await;
    let (_, token) = web.tenant("acme").await;
    let read = Arc::new(AtomicUsize::new(0));
    let pieces = |most: usize| {
        let read = Arc::clone(&read);
        read.store(0, Ordering::Relaxed);
        let piece = move |_| {
            read.fetch_add(1, Ordering::Relaxed);
            Ok::<_, std::io::Error>(Bytes::from(format!("{}\n", "x".repeat(999))))
        };
        Body::from_stream(stream::iter(0..most).map(piece))
    };
    assert_eq!(send(&web, &token, "", "text/csv", pieces(30)).await.problem(), (422, "header_missing".into()));
    assert_eq!(read.load(Ordering::Relaxed), 30);
    // One that never ends is ended all the same.
    assert_eq!(send(&web, &token, "", "text/csv", pieces(usize::MAX)).await.problem(), (422, "header_missing".into()));
    assert!(read.load(Ordering::Relaxed) < 100, "{read:?}");
    nothing_stays(&web, "refused").await;
}

/// The same for what is refused before a byte of the file was looked at.
#[tokio::test]
async fn what_is_refused_before_it_is_read_is_read_to_its_end_too() {
    let web = Web::configured(533, "[imports]\nmax_bytes = 40000\n").await;
    let (acme, token) = web.tenant("acme").await;
    let cookie = web.admin(&acme).await;
    let read = Arc::new(AtomicUsize::new(0));
    let pieces = |most: usize| {
        let read = Arc::clone(&read);
        read.store(0, Ordering::Relaxed);
        let piece = move |_| {
            read.fetch_add(1, Ordering::Relaxed);
            Ok::<_, std::io::Error>(Bytes::from("x".repeat(1000)))
        };
        Body::from_stream(stream::iter(0..most).map(piece))
    };
    for (question, kind, refused) in [
        ("", "application/pdf", (415, "not_a_list")),
        ("?tenant=nobody", "text/csv", (422, "tenant_unknown")),
        ("?create_tenants=true", "text/csv", (403, "operator_needed")),
        ("?nonsense=1", "text/csv", (400, "bad_query")),
    ] {
        for (most, at_most) in [(30, 30), (usize::MAX, 99)] {
            let answer = send(&web, &token, question, kind, pieces(most)).await;
            assert_eq!(answer.problem(), (refused.0, refused.1.to_owned()));
            let read = read.load(Ordering::Relaxed);
            assert!((30..=at_most).contains(&read), "{question} {kind}: {read} of {most}");
        }
    }
    let form = "multipart/form-data; boundary=x";
    for (origin, kind) in [("https://evil.example", form), (PUBLIC_URL, "text/plain"), (PUBLIC_URL, form)] {
        let request = web.browser(&cookie, "POST", "/imports").header("origin", origin).header("content-type", kind);
        let answer = web.send(request.body(pieces(30)).unwrap()).await;
        assert!(answer.status.is_client_error(), "{origin} {kind}: {}", answer.status);
        assert_eq!(read.load(Ordering::Relaxed), 30, "{origin} {kind}");
    }
    // Whoever asks before they send is answered before they send.
    let asks = Request::builder().method("POST").uri("/api/v1/imports").header("content-type", "application/pdf");
    let asks = asks.header("expect", "100-continue").header("authorization", format!("Bearer {token}"));
    assert_eq!(web.send(asks.body(pieces(30)).unwrap()).await.status, 415);
    assert_eq!(read.load(Ordering::Relaxed), 0);
    // One who sends nothing more is waited for a while only.
    let still = async {
        let stalls = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
        send(&web, &token, "", "application/pdf", stalls).await
    };
    let time = async {
        while web.rig.hand.next_wake().is_none() {
            tokio::task::yield_now().await;
        }
        web.rig.hand.advance(Duration::from_secs(3600));
    };
    let (answer, ()) = tokio::join!(still, time);
    assert_eq!(answer.status, 415);
    nothing_stays(&web, "refused").await;
}

/// A body that breaks off after some of its bytes.
fn broken(bytes: &str) -> Body {
    let piece: Result<Bytes, std::io::Error> = Ok(Bytes::from(bytes.to_owned()));
    Body::from_stream(stream::iter([piece, Err(std::io::Error::other("the line is dead"))]))
}

#[tokio::test]
async fn an_upload_that_breaks_off_or_stalls_leaves_nothing() {
    let web = Web::new(523).await;
    let (_, token) = web.tenant("acme").await;
    assert_eq!(send(&web, &token, "", "text/csv", broken(&names(1_700))).await.problem(), (400, "body_cut_off".into()));
    nothing_stays(&web, "cut off").await;
    // One that stalls is given up after its time.
    let piece: Result<Bytes, std::io::Error> = Ok(Bytes::from(names(800)));
    let stalled = Body::from_stream(stream::iter([piece]).chain(stream::pending()));
    let sending = send(&web, &token, "", "text/csv", stalled);
    let clock = async {
        while count(&web, "SELECT count(*) AS n FROM import_rows").await == 0 || web.rig.hand.next_wake().is_none() {
            tokio::task::yield_now().await;
        }
        web.rig.hand.advance(Duration::from_secs(31));
    };
    let (answer, ()) = tokio::join!(sending, clock);
    assert_eq!(answer.problem(), (408, "body_too_slow".into()));
    nothing_stays(&web, "stalled").await;
}

/// Whoever sends may vanish at any moment, and the request with them: nothing stays, and their next try is not kept waiting.
#[tokio::test]
async fn a_sender_that_vanishes_leaves_nothing_at_any_place_and_may_send_again_at_once() {
    let mut places = 0;
    for cut in 1.. {
        let web = Web::new(524).await;
        let (_, token) = web.tenant("acme").await;
        web.rig.scissors.set(cut);
        let answer = tokio::select! {
            biased;
            answer = send_keyed(&web, &token, "", "text/csv", names(1_200), Some("k")) => Some(answer),
            () = web.rig.scissors.reached() => None,
        };
        web.rig.scissors.set(0);
        if answer.is_some() {
            break;
        }
        places += 1;
        if web.rig.scissors.crossed().last() == Some(&"the file counts") {
            // It was whole: what was committed is not lost, and the answer is had by asking again.
            let again = send_keyed(&web, &token, "", "text/csv", names(1_200), Some("k")).await;
            assert_eq!((again.status.as_u16(), again.header("idempotency-replayed")), (200, "true"));
            continue;
        }
        let receiving = "SELECT count(*) AS n FROM imports WHERE state = 'receiving'";
        until("what broke off is given up", async || count(&web, receiving).await == 0).await;
        nothing_stays(&web, web.rig.scissors.crossed().last().unwrap()).await;
        assert_eq!(send_keyed(&web, &token, "", "text/csv", names(1_200), Some("k")).await.status, 201);
    }
    assert!(places >= 6, "{places}");
}

#[tokio::test]
async fn a_file_whose_process_died_is_given_up_when_nothing_came_for_long() {
    let web = Web::new(530).await;
    let (acme, token) = web.tenant("acme").await;
    let token_id = TokenId::mint(web.rig.env.now(), [7; 10]);
    let sender = Caller { principal: Principal::Tenant(acme), token: token_id };
    let new = bulk::NewImport {
        name: "names.csv".into(),
        format: Format::Csv,
        dry_run: false,
        create_tenants: false,
        default_tenant: None,
        idempotency_key: Some("k".into()),
        rules: NameRules { extra_suffixes: vec!["test".into()], ..NameRules::default() },
        max_rows: 10_000,
        max_bytes: 1_000_000,
    };
    // Nothing of a dead process runs any more, destructors least of all.
    let mut receiving = ManuallyDrop::new(bulk::begin(&web.rig.app, &sender, "tenant", new).await.unwrap());
    receiving.take(names(1_200).as_bytes()).await.unwrap();
    let send = async || send_keyed(&web, &token, "", "text/csv", names(1_200), Some("k")).await;
    assert_eq!(send().await.problem(), (409, "idempotency_in_flight".into()), "for all that is known it is still arriving");
    web.rig.hand.advance(Duration::from_secs(301));
    nothing_stays(&web, "the process died").await;
    assert_eq!(send().await.status, 201);
}

/// An import judged by workers of which each dies at its `cut`-th boundary; how many died.
async fn judged_with_cuts(kind: Kind, cut: usize) -> usize {
    let test = TestStore::blank(kind).await;
    let web = Web::on(Rig::on(525, &test.url).await, "").await;
    web.tenant("acme").await;
    let mut file = "hostname,tenant\n".to_owned();
    for n in 0..330 {
        file.push_str(&match n % 50 {
            7 => format!("bad_{n}.acme.test,acme\n"),
            9 => format!("n{}.acme.test,acme\n", n - 1),
            11 => format!("n{n}.acme.test,ten_{}\n", "0".repeat(32)),
            13 => format!("n{n}.new{n}.test,new{n}\n"),
            _ => format!("n{n}.acme.test,acme\n"),
        });
    }
    let sent = send(&web, &web.operator, "?create_tenants=true", "text/csv", file).await.json();
    let mut died = 0;
    for round in 0..100 {
        // Every other worker lives, or a cut before the commit would never end.
        web.rig.scissors.set(if round % 2 == 0 { cut } else { 0 });
        let app = web.rig.new_worker();
        let more = tokio::select! {
            biased;
            more = bulk::round(&app) => more.unwrap(),
            () = web.rig.scissors.reached() => {
                died += 1;
                // A worker that died in the middle has its lease for a while.
                Some(web.rig.env.now())
            }
        };
        web.rig.scissors.set(0);
        if more.is_none() && count(&web, "SELECT count(*) AS n FROM imports WHERE state = 'working'").await == 0 {
            break;
        }
        web.rig.hand.advance(Duration::from_secs(16));
    }
    let done = show(&web, &web.operator, sent["id"].as_str().unwrap()).await;
    assert_eq!(
        (&done["state"], &done["judged"], &done["tenants_added"]),
        (&json!("done"), &json!(330), &json!(7)),
        "{kind:?} cut at {cut}: {done}"
    );
    let v = &done["verdicts"];
    let all: i64 = ["claimed", "already_yours", "duplicate", "refused"].iter().map(|k| v[*k].as_i64().unwrap()).sum();
    assert_eq!((all, &v["duplicate"], &v["refused"]), (330, &json!(7), &json!(14)), "{kind:?} cut at {cut}: {done}");
    for (what, n) in [
        ("SELECT count(*) AS n FROM domains", 309),
        ("SELECT count(*) AS n FROM events WHERE kind = 'claimed'", 309),
        ("SELECT count(*) AS n FROM import_rows WHERE verdict = 'claimed'", 309),
        ("SELECT count(*) AS n FROM domains WHERE lane = 'bulk'", 309),
        ("SELECT count(*) AS n FROM tenants", 8),
    ] {
        assert_eq!(count(&web, what).await, n, "{kind:?} cut at {cut}: {what}");
    }
    drop(web);
    test.remove().await;
    died
}

#[tokio::test]
async fn a_worker_that_dies_between_any_two_batches_repeats_no_row() {
    for cut in 0..3 {
        let died = judged_with_cuts(Kind::SqliteFile, cut).await;
        assert_eq!(died > 0, cut > 0, "{cut}: {died}");
    }
}

#[tokio::test]
async fn a_worker_that_dies_between_any_two_batches_repeats_no_row_on_postgres() {
    for cut in 0..3 {
        let died = judged_with_cuts(Kind::Postgres, cut).await;
        assert_eq!(died > 0, cut > 0, "{cut}: {died}");
    }
}

#[tokio::test]
async fn a_key_stands_for_one_file_and_is_free_again_after_a_day() {
    let web = Web::new(526).await;
    let (_, token) = web.tenant("acme").await;
    let send = async |question: &str, n: usize| -> Answer {
        send_keyed(&web, &token, question, "text/csv", names(n), Some("one")).await
    };
    let first = send("", 3).await;
    assert_eq!(first.status, 201, "{}", first.body);
    let again = send("", 3).await;
    assert_eq!((again.status.as_u16(), &again.json()["id"]), (200, &first.json()["id"]));
    assert_eq!((again.header("idempotency-replayed"), again.header("location")), ("true", first.header("location")));
    assert_eq!(send("", 4).await.problem(), (422, "idempotency_key_reused".into()));
    assert_eq!(send("?create_tenants=false&dry_run=true", 3).await.status, 200, "the same file, no more than checked");
    assert_eq!(count(&web, "SELECT count(*) AS n FROM imports").await, 1);
    // Another caller's key is another key.
    let other = send_keyed(&web, &web.operator, "?tenant=acme", "text/csv", names(3), Some("one")).await;
    assert_eq!(other.status, 201);
    web.rig.hand.advance(Duration::from_secs(24 * 3600));
    assert_eq!(send("", 4).await.status, 201);
}

#[tokio::test]
async fn b79_many_rows_some_poisoned_are_data_and_the_file_can_be_sent_again() {
    let web = Web::new(527).await;
    let (_, token) = web.tenant("acme").await;
    let mut file = "hostname\n".to_owned();
    let mut bad = 0;
    for n in 0..3_000 {
        match n % 100 {
            50 => {
                bad += 1;
                file.push_str(
                    [
                        "a.example.com {\n",
                        "=1+1.example\n",
                        "$(x).example\n",
                        "\"<script>alert(1)</script>\"\n",
                        "\u{202e}moc.test\n",
                    ][n / 100 % 5],
                );
            }
            _ => file.push_str(&format!("n{n}.acme.test\n")),
        }
    }
    let done = import(&web, &token, "", &file).await;
    assert_eq!((&done["verdicts"]["claimed"], &done["verdicts"]["refused"]), (&json!(3_000 - bad), &json!(bad)));
    let again = import(&web, &token, "", &file).await;
    assert_eq!((&again["verdicts"]["already_yours"], &again["verdicts"]["refused"]), (&json!(3_000 - bad), &json!(bad)));
    assert_eq!(count(&web, "SELECT count(*) AS n FROM domains").await, i64::from(3_000 - bad));
    let refused = web
        .api(&token, "GET", &format!("/api/v1/imports/{}/rows?verdict=refused", again["id"].as_str().unwrap()), None)
        .await
        .json();
    for row in refused["items"].as_array().unwrap() {
        assert!(
            row["code"].as_str().unwrap().starts_with("hostname_") && !row["detail"].as_str().unwrap().contains('\u{202e}'),
            "{row}"
        );
    }
}

/// The same at its full size: the file arrives in pieces, the process that judges it dies at row 60,000, and it is sent again.
#[tokio::test]
async fn b79_a_hundred_thousand_rows_survive_a_death_in_the_middle_and_are_claimed_once() {
    const ROWS: usize = 100_000;
    let web = Web::new(532).await;
    let (_, token) = web.tenant("acme").await;
    let row = |n: usize| match n % 100 {
        50 => ["a.example.com {\n", "=1+1.example\n", "$(x).example\n", "\"<script>alert(1)</script>\"\n"][n / 100 % 4]
            .to_owned(),
        _ => format!("n{n}.acme.test\n"),
    };
    let file = || {
        let pieces = (0..ROWS / 500).map(move |p| (p * 500..(p + 1) * 500).map(row).collect::<String>());
        let head = std::iter::once("hostname\n".to_owned());
        Body::from_stream(stream::iter(head.chain(pieces).map(|text| Ok::<_, std::io::Error>(Bytes::from(text)))))
    };
    let (bad, good) = (ROWS / 100, ROWS - ROWS / 100);
    let sent = send(&web, &token, "", "text/csv", file()).await;
    assert_eq!(sent.status, 201, "{}", sent.body);
    let id = sent.json()["id"].as_str().unwrap().to_owned();
    let judged = "SELECT count(*) AS n FROM import_rows WHERE verdict <> 'pending'";
    // It dies right before what it judged of this turn is written down.
    while count(&web, judged).await < 60_000 {
        bulk::round(&web.rig.app).await.unwrap();
    }
    web.rig.hand.advance(Duration::from_secs(60));
    web.rig.scissors.set(1);
    let app = web.rig.new_worker();
    tokio::select! { biased; _ = bulk::round(&app) => panic!("it lived"), () = web.rig.scissors.reached() => {} }
    web.rig.scissors.set(0);
    assert!(count(&web, judged).await < i64::try_from(ROWS).unwrap());
    web.rig.hand.advance(Duration::from_secs(60));
    work(&web).await;
    let done = show(&web, &token, &id).await;
    assert_eq!((&done["state"], &done["judged"]), (&json!("done"), &json!(ROWS)), "{done}");
    assert_eq!((&done["verdicts"]["claimed"], &done["verdicts"]["refused"]), (&json!(good), &json!(bad)), "{done}");
    for what in ["SELECT count(*) AS n FROM domains", "SELECT count(*) AS n FROM events WHERE kind = 'claimed'"] {
        assert_eq!(count(&web, what).await, i64::try_from(good).unwrap(), "{what}");
    }
    // Sent again, nothing is claimed twice; each row has its line in the file of results.
    let again = send(&web, &token, "", "text/csv", file()).await.json();
    work(&web).await;
    let done = show(&web, &token, again["id"].as_str().unwrap()).await;
    assert_eq!((&done["verdicts"]["already_yours"], &done["verdicts"]["refused"]), (&json!(good), &json!(bad)), "{done}");
    assert_eq!(count(&web, "SELECT count(*) AS n FROM domains").await, i64::try_from(good).unwrap());
    let results = web.api(&token, "GET", &format!("/api/v1/imports/{id}/results?format=ndjson"), None).await;
    let of =
        |verdict: &str| results.body.lines().filter(|line| line.contains(&format!("\"verdict\":\"{verdict}\""))).count();
    assert_eq!((results.body.lines().count(), of("claimed"), of("refused")), (ROWS, good, bad));
}

#[tokio::test]
async fn rows_of_a_tenant_that_leaves_in_between_are_refused_and_the_others_go_on() {
    let web = Web::new(528).await;
    let (acme, _) = web.tenant("acme").await;
    web.tenant("other").await;
    let sent =
        send(&web, &web.operator, "", "text/csv", "hostname,tenant\na.acme.test,acme\nb.other.test,other\n").await.json();
    nameplate::app::offboard::begin(&web.rig.app.store, &web.rig.env, &acme, "operator").await.unwrap();
    work(&web).await;
    assert_eq!(verdicts(&web, &web.operator, &sent["id"]).await, ["2 refused tenant_not_active", "3 claimed"]);
}

/// What is kept of one sender has a bound, whatever they send; the youngest stay, and so does what is under way.
#[tokio::test]
async fn of_one_sender_so_many_verdicts_are_kept() {
    let web = Web::new(531).await;
    let (_, token) = web.tenant("acme").await;
    let (_, other) = web.tenant("other").await;
    let mut ids = Vec::new();
    for n in 0..3 {
        let done = import(&web, &token, "?dry_run=true", &format!("hostname\nn{n}.acme.test\n")).await;
        ids.push(done["id"].as_str().unwrap().to_owned());
        web.rig.hand.advance(Duration::from_secs(1));
    }
    let theirs = import(&web, &other, "?dry_run=true", "hostname\nn.other.test\n").await;
    let large = sql("UPDATE imports SET row_count = 2000000, cursor = 2000000 WHERE id = $1").bind(ids[1].as_str());
    web.rig.app.store.execute(large).await.unwrap();
    import(&web, &token, "?dry_run=true", "hostname\nn4.acme.test\n").await;
    let status =
        async |token: &str, id: &str| web.api(token, "GET", &format!("/api/v1/imports/{id}"), None).await.status.as_u16();
    assert_eq!(
        (status(&token, &ids[0]).await, status(&token, &ids[1]).await, status(&token, &ids[2]).await),
        (404, 200, 200)
    );
    assert_eq!(status(&other, theirs["id"].as_str().unwrap()).await, 200, "another's are another's");
    let rows = sql("SELECT count(*) AS n FROM import_rows WHERE import_id = $1").bind(ids[0].as_str());
    assert_eq!(web.rig.count(rows).await, 0);
}

#[tokio::test]
async fn imports_that_are_over_are_forgotten_in_time() {
    let web = Web::new(529).await;
    let (_, token) = web.tenant("acme").await;
    let done = import(&web, &token, "", &names(5)).await;
    web.rig.hand.advance(Duration::from_secs(89 * 86_400));
    work(&web).await;
    assert_eq!(show(&web, &token, done["id"].as_str().unwrap()).await["state"], "done");
    web.rig.hand.advance(Duration::from_secs(2 * 86_400));
    work(&web).await;
    assert_eq!(
        (count(&web, "SELECT count(*) AS n FROM imports").await, count(&web, "SELECT count(*) AS n FROM import_rows").await),
        (0, 0)
    );
    assert_eq!(count(&web, "SELECT count(*) AS n FROM domains").await, 5, "its claims stay");
}

#[tokio::test]
async fn what_is_asked_wrongly_is_told_before_the_file_is_read() {
    let web = Web::new(530).await;
    let unread = || Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
    let send = async |question: &str, key: &str| -> (u16, String) {
        let request = Request::builder()
            .method("POST")
            .uri(format!("/api/v1/imports{question}"))
            .header("authorization", format!("Bearer {}", web.operator))
            .header("content-type", "text/csv")
            .header("expect", "100-continue")
            .header("idempotency-key", key);
        web.send(request.body(unread()).unwrap()).await.problem()
    };
    assert_eq!(send("?tenant=nobody", "k").await, (422, "tenant_unknown".into()));
    assert_eq!(send("?dryrun=true", "k").await, (400, "bad_query".into()));
    assert_eq!(send("?dry_run=maybe", "k").await, (400, "bad_query".into()));
    assert_eq!(send("?name=", "k").await, (422, "name_length".into()));
    assert_eq!(send("", "a b").await, (400, "idempotency_key_invalid".into()));
    assert_eq!(count(&web, "SELECT count(*) AS n FROM imports").await, 0);
    let list: Value = web.api(&web.operator, "GET", "/api/v1/imports?state=broken", None).await.json();
    assert_eq!(list["items"], json!([]));
    let odd = web.api(&web.operator, "GET", "/api/v1/imports?digest=x", None).await;
    assert_eq!(odd.problem(), (422, "digest_invalid".into()));
    assert_eq!(
        web.api(&web.operator, "GET", "/api/v1/imports?state=x", None).await.problem(),
        (422, "state_invalid".into())
    );
}
