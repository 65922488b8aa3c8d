//! A file of 100,000 names, handed over by the API: how long until it is accepted, how long until every row has its verdict, and
//! how much memory that takes, on SQLite and on PostgreSQL.
//!
//! Run `./scripts/test only --release --bench import`, which starts a PostgreSQL; without one (`cargo bench --bench import`) SQLite
//! alone is measured. The file is made while it is sent, one name in a hundred is none, and the router is called without a socket.
//! It fails when the file is not accepted within 60 s, or memory grows by more than 100 MB at any moment until the last verdict.
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the real clock")]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::http::Request;
use futures::stream;
use nameplate::app::bulk;

#[path = "../tests/it/support"]
mod support {
    pub mod kernel;
    #[expect(dead_code, reason = "the tests use more of the rig than the benchmark does")]
    pub mod rig;
    #[expect(dead_code, reason = "the benchmark starts no CA")]
    pub mod services;
    #[expect(dead_code, reason = "the tests use more kinds of store than the benchmark does")]
    pub mod stores;
    #[expect(dead_code, reason = "the tests ask for more than the benchmark does")]
    pub mod web;
}

use support::kernel;
use support::rig::Rig;
use support::stores::{Kind, TestStore};
use support::web::Web;

const ROWS: usize = 100_000;
const ACCEPTED: Duration = Duration::from_secs(60);
const GROWTH_KB: u64 = 100 * 1024;

/// The file, a thousand rows a piece.
fn file() -> Body {
    let piece = |n: usize| {
        let mut text = if n == 0 { "hostname,tenant\r\n".to_owned() } else { String::new() };
        for row in n * 1_000..(n + 1) * 1_000 {
            match row % 100 {
                50 => text.push_str(&format!("bad_{row}.customer{}.test,acme\r\n", row / 3)),
                _ => text.push_str(&format!("www{row}.customer{}.test,acme\r\n", row / 3)),
            }
        }
        Ok::<_, std::io::Error>(Bytes::from(text))
    };
    Body::from_stream(stream::iter((0..ROWS / 1_000).map(piece)))
}

async fn measure(kind: Kind) -> bool {
    let test = TestStore::blank(kind).await;
    let web = Web::on(Rig::on(1, &test.url).await, "").await;
    web.tenant("acme").await;
    // The first file warms up what is made once.
    send(&web, Body::from("hostname,tenant\nwarm.customer.test,acme\n")).await;
    kernel::forget_the_highest();
    let before = kernel::kb("self", "VmRSS:");
    let began = Instant::now();
    let id = send(&web, file()).await;
    let (accepted, at_acceptance) = (began.elapsed(), kernel::kb("self", "VmHWM:"));
    while bulk::round(&web.rig.app).await.unwrap().is_some() {}
    let (judged, at_the_end) = (began.elapsed(), kernel::kb("self", "VmHWM:"));
    let done = web.api(&web.operator, "GET", &format!("/api/v1/imports/{id}"), None).await.json();
    assert_eq!(done["verdicts"]["refused"], ROWS / 100, "{done}");
    let growth = at_the_end.saturating_sub(before);
    println!(
        "{kind:?}: {ROWS} rows accepted in {:.1} s (+{:.1} MB), every verdict after {:.1} s (+{:.1} MB)",
        accepted.as_secs_f64(),
        kernel::mb(at_acceptance.saturating_sub(before)),
        judged.as_secs_f64(),
        kernel::mb(growth),
    );
    drop(web);
    test.remove().await;
    accepted <= ACCEPTED && growth <= GROWTH_KB
}

/// Sends a file; the id of its import.
async fn send(web: &Web, file: Body) -> String {
    let request = Request::builder()
        .method("POST")
        .uri("/api/v1/imports")
        .header("content-type", "text/csv")
        .header("authorization", format!("Bearer {}", web.operator));
    let answer = web.send(request.body(file).unwrap()).await;
    assert_eq!(answer.status, 201, "{}", answer.body);
    answer.json()["id"].as_str().unwrap().to_owned()
}

#[tokio::main]
async fn main() -> ExitCode {
    let mut well = measure(Kind::SqliteFile).await;
    if std::env::var_os("NAMEPLATE_TEST_POSTGRES_URL").is_some() {
        well &= measure(Kind::Postgres).await;
    }
    if well {
        return ExitCode::SUCCESS;
    }
    eprintln!("over 60 s, or over 100 MB");
    ExitCode::FAILURE
}
