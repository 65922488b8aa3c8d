//! What pages and lists cost with 100,000 domains of 1,000 tenants, next to 1,000 domains of 10, on SQLite and on PostgreSQL.
//!
//! Run `./scripts/test only --release --bench pages`, which starts a PostgreSQL; without one (`cargo bench --bench pages`) SQLite alone is
//! measured. Server time is from the request to the last byte of the answer, without a socket. Every request is a second
//! apart by the clock that the pages read, so that large fleets are counted again in passing as they would be. It fails when a
//! page takes longer than 20 ms at p99, or has more than 60 kB.
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the real clock")]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use axum::body::Body;
use nameplate::app::tokens::{self, Principal};
use nameplate::model::id::TenantId;
use nameplate::store::issuers;

#[path = "../tests/it/support"]
mod support {
    pub mod fleet_seed;
    #[expect(dead_code, reason = "the tests use more of the rig than the benchmark does")]
    pub mod rig;
    #[expect(dead_code, reason = "the benchmark starts no CA")]
    pub mod services;
    #[expect(dead_code, reason = "the tests use more kinds of store than the benchmark does")]
    pub mod stores;
    #[expect(dead_code, reason = "the tests ask for more than the benchmark does")]
    pub mod web;
}

use support::fleet_seed;
use support::rig::{Rig, START};
use support::stores::{Kind, TestStore};
use support::web::Web;

const REQUESTS: usize = 200;
const WARM: usize = 20;
const SLOWEST: Duration = Duration::from_millis(20);
const LARGEST: usize = 60_000;

/// What is measured: its name, whether a tenant asks, and the path. `{n}` is another domain with every request.
const PAGES: &[(&str, bool, &str)] = &[
    ("API: a tenant's list", true, "/api/v1/domains"),
    ("API: list of all", false, "/api/v1/domains?limit=50"),
    ("API: list by hostname", false, "/api/v1/domains?hostname=support{n}.customer{n}.test"),
    ("API: a tenant's events", true, "/api/v1/events?after=0"),
    ("API: explain", false, "/api/v1/explain?hostname=support{n}.customer{n}.test"),
    ("portal: a tenant's list", true, "/domains"),
    ("portal: a tenant's search", true, "/domains?q=support"),
    ("portal: a domain", false, "/domains/dom_{id}"),
    ("operator: fleet", false, "/operator"),
    ("operator: search, whole name", false, "/operator/domains?q=support{n}.customer{n}.test"),
    ("operator: search, beginning", false, "/operator/domains?q=customer1"),
    ("operator: by reason", false, "/operator/domains?reason=cname_points_elsewhere"),
    ("operator: by whose move", false, "/operator/domains?acts=tenant"),
    ("operator: a domain", false, "/operator/domains/dom_{id}"),
    ("operator: tenants", false, "/operator/tenants"),
    ("operator: a tenant", false, "/operator/tenants/ten_00000000000000000000000000000003"),
    ("operator: queue", false, "/operator/queue"),
    ("operator: expiry", false, "/operator/expiry"),
    ("operator: edges", false, "/operator/edges"),
];

struct Measured {
    p50: Duration,
    p99: Duration,
    bytes: usize,
}

/// Somebody who asks: by token at the API, by session on pages.
struct Reader {
    token: String,
    cookie: String,
}

async fn measure(web: &Web, reader: &Reader, path: &str, domains: i64) -> Measured {
    let (header, value) = match path.starts_with("/api/") {
        true => ("authorization", format!("Bearer {}", reader.token)),
        false => ("cookie", reader.cookie.clone()),
    };

    let mut times = Vec::with_capacity(REQUESTS);
    let mut bytes = 0;
    for round in 0..REQUESTS + WARM {
        let n = i64::try_from(round).unwrap() * 7_919 % domains;
        let path = path.replace("{n}", &n.to_string()).replace("{id}", &format!("{n:032}"));
        let request = axum::http::Request::builder().uri(&path).header(header, &value).body(Body::empty()).unwrap();
        // A second later by the clock, what the last one began in passing has ended.
        web.rig.app.fleet.settled().await;
        web.rig.hand.advance(Duration::from_secs(1));
        let began = Instant::now();
        let answer = web.send(request).await;
        let took = began.elapsed();
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        bytes = bytes.max(answer.body.len());
        if round >= WARM {
            times.push(took);
        }
    }
    times.sort();
    Measured { p50: times[REQUESTS / 2], p99: times[REQUESTS * 99 / 100], bytes }
}

async fn fleet(kind: Kind, domains: i64, tenants: i64) -> Vec<Measured> {
    let test = TestStore::blank(kind).await;
    let web = Web::on(Rig::on(1, &test.url).await, "").await;
    let store = &web.rig.app.store;
    let issuer = issuers::list(store).await.unwrap().remove(0);
    let began = Instant::now();
    fleet_seed::fill(store, &fleet_seed::parts(), (domains, tenants), issuer.id.as_str(), START).await;
    eprintln!("{kind:?}: {domains} domains of {tenants} tenants written in {:.1} s", began.elapsed().as_secs_f64());
    let tenant: TenantId = format!("ten_{:032}", 3).parse().unwrap();
    let cookie = web.admin(&tenant).await;
    let minted = tokens::mint(store, &web.rig.env, &Principal::Tenant(tenant), "bench", None).await.unwrap();
    let tenant = Reader { token: minted.text.expose_str().unwrap().to_owned(), cookie };
    let operator = Reader { token: web.operator.clone(), cookie: web.signed_in_operator().await };
    let mut all = Vec::new();
    for (_, as_tenant, path) in PAGES {
        all.push(measure(&web, if *as_tenant { &tenant } else { &operator }, path, domains).await);
    }
    drop(web);
    test.remove().await;
    all
}

#[tokio::main]
async fn main() -> ExitCode {
    let mut kinds = vec![Kind::SqliteFile];
    if std::env::var_os("NAMEPLATE_TEST_POSTGRES_URL").is_some() {
        kinds.push(Kind::Postgres);
    }
    let mut over = Vec::new();
    for kind in kinds {
        let small = fleet(kind, 1_000, 10).await;
        let large = fleet(kind, 100_000, 1_000).await;
        println!("{kind:?}: 1,000 domains of 10 tenants, and 100,000 of 1,000");
        println!("{:32} {:>9} {:>9} {:>9} {:>9} {:>6} {:>8}", "", "p50 ms", "p99 ms", "p50 ms", "p99 ms", "ratio", "bytes");
        for (((name, ..), few), many) in PAGES.iter().zip(&small).zip(&large) {
            let ms = |d: Duration| d.as_secs_f64() * 1_000.0;
            let ratio = ms(many.p50) / ms(few.p50);
            let (p50, p99) = (ms(few.p50), ms(few.p99));
            println!(
                "{name:32} {p50:>9.2} {p99:>9.2} {:>9.2} {:>9.2} {ratio:>6.1} {:>8}",
                ms(many.p50),
                ms(many.p99),
                many.bytes
            );
            if many.p99 > SLOWEST || many.bytes > LARGEST {
                over.push(format!("{name} on {kind:?}: p99 {:?}, {} bytes", many.p99, many.bytes));
            }
        }
    }
    if over.is_empty() {
        return ExitCode::SUCCESS;
    }
    eprintln!("over 20 ms or 60 kB: {}", over.join("; "));
    ExitCode::FAILURE
}
