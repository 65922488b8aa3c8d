//! Those who watch: health, readiness, metrics, the access log, and the proof to the origin.

use std::sync::Arc;
use std::time::Duration;

use nameplate::config::{Config, Role, Sources};
use nameplate::env::Env;
use nameplate::env::manual::Hand;
use nameplate::model::id::EdgeId;
use nameplate::model::moment::Moment;
use nameplate::model::secret::Secret;
use nameplate::roles::observe::{Watched, WatchedControl, serve};
use nameplate::roles::{ControlPlane, open_store};
use nameplate::store::{census, edges, sql};
use nameplate::telemetry::metrics::Census;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::edge_http2::served;
use crate::support::feed_world::{RunningEdge, World, until};
use crate::support::live_origin::LiveOrigin;
use crate::support::stores::{Kind, TestStore, for_each_store};
use crate::support::visitor::{connect, exchange, get, plain};
use crate::support::web::Web;

const HOST: &str = "support.acme.test";

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or("no answer")
}

async fn watch(role: Arc<dyn Watched>) -> (std::net::SocketAddr, AbortOnDropHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    (at, AbortOnDropHandle::new(tokio::spawn(serve(listener, role, Env::real()))))
}

async fn ask(at: std::net::SocketAddr, line: &str) -> String {
    plain(at, &format!("{line} HTTP/1.1\r\nHost: watch\r\nConnection: close\r\n\r\n")).await
}

#[tokio::test]
async fn an_edge_is_ready_when_it_has_a_book_and_until_it_is_told_to_stop() {
    let mut world = World::new().await;
    let token = world.join_token().await;
    world.serve(HOST).await;
    world.down().await;
    let origin = LiveOrigin::start().await;
    let edge = RunningEdge::start(&world.dir.path().join("edge-1"), "edge-1", origin.at, Some(token)).await;
    let (at, _watching) = watch(Arc::new(edge.view.clone())).await;
    assert_eq!(status(&ask(at, "GET /healthz").await), "200");
    let answer = ask(at, "GET /readyz").await;
    assert!(status(&answer) == "503" && answer.contains("no book"), "{answer}");
    world.up().await;
    world.rolled_out("host", HOST).await;
    assert_eq!(status(&ask(at, "GET /readyz").await), "200");

    // The control plane goes away: the copy ages, which is told and no reason to send visitors elsewhere.
    world.down().await;
    until("the trouble", async || ask(at, "GET /metrics").await.contains("nameplate_edge_following 0\n")).await;
    assert_eq!(status(&ask(at, "GET /readyz").await), "200");

    let slow = tokio::spawn({
        let (root, tls) = (world.ca.root.clone(), edge.tls);
        async move { get(tls, HOST, &root, "/hang", "").await }
    });
    origin.began.notified().await;
    edge.stop.cancel();
    until("the drain is told", async || ask(at, "GET /readyz").await.contains("told to stop")).await;
    assert_eq!(status(&ask(at, "GET /healthz").await), "200");
    assert!(ask(at, "GET /metrics").await.contains("nameplate_edge_draining 1\n"));
    slow.abort();
    edge.stop().await;
}

#[tokio::test]
async fn the_port_answers_its_three_paths_and_nothing_else() {
    let (_world, _origin, edge) = served(|_| {}).await;
    let (at, _watching) = watch(Arc::new(edge.view.clone())).await;
    for (line, expected) in [
        ("GET /", "404"),
        ("GET /metrics/", "404"),
        ("GET /../healthz", "404"),
        ("POST /readyz", "405"),
        ("DELETE /metrics", "405"),
        ("HEAD /metrics", "200"),
        ("GET /readyz?verbose=1", "200"),
    ] {
        assert_eq!(status(&ask(at, line).await), expected, "{line}");
    }
    let text = ask(at, "GET /metrics").await;
    assert!(
        text.contains("content-type: application/openmetrics-text; version=1.0.0; charset=utf-8")
            && text.ends_with("# EOF\n")
    );
    edge.stop().await;
}

#[tokio::test]
async fn an_edges_numbers_say_what_happened_and_nobodys_name() {
    let (world, _origin, edge) = served(|_| {}).await;
    assert_eq!(status(&get(edge.tls, HOST, &world.ca.root, "/", "").await), "200");
    assert!(connect(edge.tls, "nobody.example", &world.ca.root).await.is_err());
    let stream = connect(edge.tls, HOST, &world.ca.root).await.unwrap();
    let answer = exchange(stream, "GET / HTTP/1.1\r\nHost: other.example\r\nConnection: close\r\n\r\n").await;
    assert_eq!(status(&answer), "421");
    let (at, _watching) = watch(Arc::new(edge.view.clone())).await;
    until("both are counted", async || ask(at, "GET /metrics").await.contains("status=\"4xx\"} 1\n")).await;
    let text = ask(at, "GET /metrics").await;
    for line in [
        "nameplate_edge_requests_total{protocol=\"h1\",status=\"2xx\"} 1",
        "nameplate_edge_own_answers_total{status=\"421\"} 1",
        "nameplate_edge_handshakes_total{outcome=\"no_certificate\"} 1",
        "nameplate_edge_upstream_seconds_count 1",
        "nameplate_edge_hosts 1",
        "nameplate_edge_certificates 1",
        "nameplate_edge_certificates_expired 0",
        "nameplate_edge_following 1",
    ] {
        assert!(text.lines().any(|l| l == line), "{line} in {text}");
    }
    for name in ["acme", "other.example", "nobody", world.tenant.as_str()] {
        assert!(!text.contains(name), "{name} in {text}");
    }
    let began = world.env.now();
    for _ in 0..20 {
        drop(edge.view.metrics());
    }
    assert!(world.env.now().since(began) < Duration::from_millis(400), "a scrape takes milliseconds");
    edge.stop().await;
}

#[tokio::test]
async fn a_control_planes_numbers_come_from_its_database_and_are_read_every_few_seconds() {
    let web = Web::new(77).await;
    let app = web.rig.app.clone();
    let stop = CancellationToken::new();
    let watched = WatchedControl::new(app.clone(), stop.clone());
    assert_eq!(watched.unready().await, ["the sweep has not done its work yet"]);
    app.meters.swept(web.rig.env.now(), 0);
    assert!(watched.unready().await.is_empty());

    let (tenant, token) = web.tenant("acme").await;
    web.rig.claim(&tenant, "one.acme.test").await;
    assert_eq!(web.api(&token, "GET", "/api/v1/domains/dom_nobody", None).await.status, 404);
    assert_eq!(web.api(&token, "GET", "/api/v1/no-such-thing/acme", None).await.status, 404);
    let text = watched.metrics().await;
    for line in [
        "nameplate_domains{claim=\"awaiting_dns\"} 1",
        "nameplate_domains{claim=\"live\"} 0",
        "nameplate_orders_waiting{lane=\"single\"} 0",
        "nameplate_database_up 1",
        "nameplate_api_requests_total{method=\"GET\",route=\"/api/v1/domains/{id}\",status=\"4xx\"} 1",
        "nameplate_api_requests_total{method=\"GET\",route=\"other\",status=\"4xx\"} 1",
    ] {
        assert!(text.lines().any(|l| l == line), "{line} in {text}");
    }
    assert!(!text.contains("acme") && !text.contains("nobody"), "{text}");
    web.rig.claim(&tenant, "two.acme.test").await;
    assert!(watched.metrics().await.contains("nameplate_domains{claim=\"awaiting_dns\"} 1\n"), "read a moment ago");
    web.rig.hand.advance(Duration::from_secs(5));
    assert!(watched.metrics().await.contains("nameplate_domains{claim=\"awaiting_dns\"} 2\n"));

    web.rig.hand.advance(Duration::from_secs(61));
    assert!(watched.unready().await[0].contains("the sweep has done nothing for 66 s"));
    let overdue = watched.metrics().await;
    let age = overdue.lines().find_map(|l| l.strip_prefix("nameplate_domain_overdue_seconds ")).unwrap();
    assert!(age.parse::<f64>().unwrap() > 60.0, "{age}");
    app.meters.swept(web.rig.env.now(), 2);
    stop.cancel();
    assert!(watched.unready().await[0].contains("told to stop"));
    app.store.close().await;
    assert_eq!(watched.unready().await[0], "the database cannot be used");
    web.rig.hand.advance(Duration::from_secs(5));
    let text = watched.metrics().await;
    assert!(text.contains("nameplate_database_up 0\n") && text.contains("{claim=\"awaiting_dns\"} 2\n"), "{text}");
}

#[tokio::test]
async fn whoever_works_opens_the_port_and_is_ready_once_the_sweep_ran() {
    let dir = tempfile::tempdir().unwrap();
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let text = format!(
        "[database]\nurl = \"sqlite:{}\"\n[vault]\nmaster_key = \"{}\"\n[routing]\ncanonical_suffix = \"app.example\"\n\
         [dns]\nresolvers = [\"127.0.0.1:1\"]\n[issuers.test]\ndirectory = \"https://127.0.0.1:1/dir\"\n\
         [metrics]\nlisten = \"{port}\"\n",
        dir.path().join("np.db").display(),
        "ab".repeat(32)
    );
    let config = Config::read(Sources::none().file("nameplate.toml", text)).unwrap();
    let env = Env::real();
    open_store(&config).await.unwrap().close().await;
    let control = ControlPlane::open(&config, Role::Work, &env).await.unwrap();
    let stop = CancellationToken::new();
    let working = tokio::spawn(control.work(stop.clone()));
    until("the port", async || tokio::net::TcpStream::connect(port).await.is_ok()).await;
    until("readiness", async || status(&ask(port, "GET /readyz").await) == "200").await;
    let text = ask(port, "GET /metrics").await;
    assert!(text.contains("nameplate_database_up 1\n") && text.contains("nameplate_edges{state=\"counted\"} 0\n"), "{text}");
    stop.cancel();
    working.await.unwrap().unwrap();
    assert!(tokio::net::TcpStream::connect(port).await.is_err());
}

#[tokio::test]
async fn edges_are_counted_by_whether_they_are_heard_of_and_how_far_they_are() {
    for_each_store(async |test| {
        let (hand, fresh) = (Hand::new(Moment::from_secs(1_000_000), 5), Duration::from_secs(30));
        let (env, now) = (hand.env(), hand.env().now());
        let channels = ["webhook", "mail"].map(str::to_owned);
        let nothing = Census {
            pending: channels.clone().map(|c| (c, 0)).to_vec(),
            oldest: channels.map(|c| (c, None)).to_vec(),
            ..Census::default()
        };
        assert_eq!(census::take(&test.store, now, fresh).await.unwrap(), nothing);
        let feed = sql("INSERT INTO feed (id, epoch, last_seq, last_position, signing_key, tls_key, tls_cert) \
             VALUES (1, 7, 50, 0, $1, $1, '')");
        test.store.execute(feed.bind(vec![0_u8])).await.unwrap();
        for (name, status, epoch, seq, heard, lost) in [
            ("current", "active", 7, 50, 1, false),
            ("behind", "active", 7, 42, 1, false),
            ("of-old", "active", 6, 90, 1, false),
            ("silent", "active", 7, 1, 31, false),
            ("lost", "active", 7, 1, 1, true),
            ("drained", "drained", 7, 1, 1, false),
            ("revoked", "revoked", 7, 1, 1, false),
        ] {
            let id = nameplate::mint!(env, EdgeId);
            let made = edges::insert(&id, name, &[0], name.as_bytes(), now - Duration::from_secs(heard));
            test.store.execute(made).await.unwrap();
            let set = sql("UPDATE edges SET status = $2, cursor_epoch = $3, cursor_seq = $4, lost_at = $5 WHERE id = $1");
            let set = set.bind(id.as_str()).bind(status).bind(epoch).bind(seq).bind(lost.then_some(now));
            assert_eq!(test.store.execute(set).await.unwrap(), 1);
        }
        let seen = census::take(&test.store, now, fresh).await.unwrap();
        assert_eq!((seen.edges_counted, seen.edges_silent, seen.edges_lost, seen.edges_drained), (3, 1, 1, 1));
        assert_eq!((seen.feed_position, seen.edges_behind, seen.edges_lag), (50, 2, 50));
    })
    .await;
}

#[tokio::test]
async fn what_is_counted_is_counted_by_index() {
    let test = TestStore::migrated(Kind::SqliteMemory).await;
    for (stmt, index) in [
        (sql("EXPLAIN QUERY PLAN SELECT claim AS word, COUNT(*) AS n FROM domains GROUP BY claim"), "domains_by_claim"),
        (
            sql("EXPLAIN QUERY PLAN SELECT lane AS word, COUNT(*) AS n FROM orders WHERE state = 'waiting' GROUP BY lane"),
            "orders_waiting_by_lane",
        ),
        (sql("EXPLAIN QUERY PLAN SELECT COUNT(*) AS n FROM outbox WHERE seq IS NULL"), "outbox"),
        (sql("EXPLAIN QUERY PLAN SELECT COUNT(*) AS n FROM events WHERE position IS NULL"), "events"),
        (
            sql("EXPLAIN QUERY PLAN SELECT due_at FROM domains WHERE due_at <= 1 AND lease_until <= 1 \
                 AND claim NOT IN ('released', 'withdrawn') ORDER BY due_at LIMIT 1"),
            "domains_due",
        ),
    ] {
        let plan = test.store.query(stmt).await.unwrap();
        let steps: Vec<String> = plan.iter().map(|row| row.text("detail").unwrap()).collect();
        assert!(steps.iter().any(|s| s.contains("INDEX") && s.contains(index)), "{index}: {steps:?}");
    }
}

#[tokio::test]
async fn each_request_leaves_one_line_that_no_visitor_can_break() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("access.log");
    let (world, _origin, edge) = served(|settings| settings.access_log = Some((file.clone(), 1))).await;
    let forged = "X-Request-Id: {\\\"status\\\":1}\r\nX-Forwarded-For: 6.6.6.6\r\n";
    let answer = get(edge.tls, HOST, &world.ca.root, "/a%22b'?c=%0a%7B%22x%22:1%7D", forged).await;
    assert_eq!(status(&answer), "200", "{answer}");
    let id = answer.lines().find_map(|l| l.strip_prefix("x-request-id: ")).unwrap().to_owned();
    let post = format!("POST /echo HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello");
    exchange(connect(edge.tls, HOST, &world.ca.root).await.unwrap(), &post).await;
    let misdirected = "GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    exchange(connect(edge.tls, HOST, &world.ca.root).await.unwrap(), misdirected).await;
    plain(edge.plain, "GET /p HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n").await;
    edge.stop().await;
    let text = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}"))).collect();
    assert_eq!(lines.len(), 4, "{text}");
    assert!(!text.contains("evil") && !text.contains("6.6.6.6"), "{text}");
    let first = &lines[0];
    assert_eq!(
        [
            &first["host"],
            &first["tenant"],
            &first["method"],
            &first["path"],
            &first["protocol"],
            &first["tls"],
            &first["client"]
        ],
        [HOST, world.tenant.as_str(), "GET", "/a%22b'?c=%0a%7B%22x%22:1%7D", "h1", "1.3", "127.0.0.1"]
    );
    assert_eq!((first["status"].as_u64(), first["request_id"].as_str()), (Some(200), Some(id.as_str())));
    assert!(first["duration_ms"].as_f64().unwrap() > 0.0 && first["time"].as_str().unwrap().ends_with('Z'));
    assert_eq!((lines[1]["bytes_in"].as_u64(), lines[1]["bytes_out"].as_u64()), (Some(5), Some(5)));
    assert_eq!((lines[2]["status"].as_u64(), lines[2]["host"].as_str()), (Some(421), Some(HOST)));
    assert_eq!(
        (lines[3]["status"].as_u64(), &lines[3]["host"], lines[3]["protocol"].as_str()),
        (Some(404), &Value::Null, Some("plain"))
    );
}

#[tokio::test]
async fn the_origin_can_tell_that_a_request_came_through_the_edge() {
    let secret = "0123456789abcdef0123456789abcdef";
    let (world, _origin, edge) = served(|settings| settings.proof_secret = Some(Secret::from(secret.to_owned()))).await;
    let forged = "X-Nameplate-Signature: t=1,v1=00\r\nx_nameplate_signature: t=1,v1=00\r\n";
    let answer = get(edge.tls, HOST, &world.ca.root, "/path?q=1", forged).await;
    let told = |name: &str| {
        let prefix = format!("{name}=");
        let mut values = answer.lines().filter_map(|l| l.strip_prefix(&prefix));
        let value = values.next().unwrap_or_else(|| panic!("{name} in {answer}")).to_owned();
        assert_eq!(values.next(), None, "{name}");
        value
    };
    let signature = told("x-nameplate-signature");
    let (time, tag) = signature.strip_prefix("t=").unwrap().split_once(",v1=").unwrap();
    let signed = ["host", "x-tenant-id", "x-tenant-slug", "x-forwarded-for", "x-request-id"].map(told).join("\n");
    let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, secret.as_bytes());
    let expected = aws_lc_rs::hmac::sign(&key, format!("v1\n{time}\nGET\n/path?q=1\n{signed}").as_bytes());
    let expected: String = expected.as_ref().iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(tag, expected);
    assert!(world.env.now().secs() - time.parse::<i64>().unwrap() < 10);
    edge.stop().await;
}
