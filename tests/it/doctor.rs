//! `nameplate doctor` on a whole installation on loopback, and on the same with one real part broken at a time.

use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;

use nameplate::config::{Config, Role, Sources};
use nameplate::env::Env;
use nameplate::env::manual::Hand;
use nameplate::mint;
use nameplate::model::id::IssuerId;
use nameplate::model::limits;
use nameplate::roles::doctor::{Finding, Report, Verdict, examine, roles_of};
use nameplate::sandbox::issuer::Choice;
use nameplate::sandbox::ports::Ports;
use nameplate::sandbox::walk::Walk;
use nameplate::sandbox::world::{World, WorldSettings};
use nameplate::store::issuers::{self, IssuerSeed};
use nameplate::store::{OpenSettings, Store, sql};

use crate::support::stores::{Kind, TestStore, until};

const BOTH: [Role; 2] = [Role::Serve, Role::Edge];

fn read(text: &str) -> Config {
    Config::read(Sources::none().file("test", text.to_owned())).unwrap()
}

#[track_caller]
fn the<'r>(report: &'r Report, part: &str, what: &str) -> &'r Finding {
    let found = report.findings.iter().find(|f| f.part == part && f.what.contains(what));
    found.unwrap_or_else(|| panic!("no line of {part} about {what} in {:#?}", report.findings))
}

/// The line is broken, says `seen`, and gives advice.
#[track_caller]
fn broken(report: &Report, part: &str, what: &str, seen: &str) {
    let line = report.findings.iter().find(|f| f.part == part && f.what.contains(what) && f.seen.contains(seen));
    let line = line.unwrap_or_else(|| panic!("no line of {part} about {what} saw {seen} in {:#?}", report.findings));
    assert!(line.verdict == Verdict::Broken && line.advice.as_ref().is_some_and(|advice| !advice.is_empty()), "{line:?}");
}

struct Installation {
    world: World,
    text: String,
    env: Env,
    _dir: tempfile::TempDir,
}

impl Installation {
    async fn start() -> Installation {
        rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
        let (env, dir) = (Env::real(), tempfile::tempdir().unwrap());
        let settings =
            WorldSettings { data: Some(dir.path().to_owned()), ca: Choice::Test, ports: Ports::free().await.unwrap() };
        let world = World::start(settings, &env).await.unwrap();
        Walk::new(&world).unwrap().tenant().await.unwrap();
        let text = std::fs::read_to_string(&world.config_file).unwrap();
        let here = Installation { world, text, env, _dir: dir };
        until("a healthy installation", || async {
            here.examine("", "").await.findings.iter().all(|f| f.verdict != Verdict::Broken)
        })
        .await;
        here
    }

    fn with(&self, from: &str, to: &str) -> Config {
        assert!(self.text.contains(from), "{from} is not in {}", self.text);
        read(&self.text.replace(from, to))
    }

    /// The report with one text of the configuration replaced.
    async fn examine(&self, from: &str, to: &str) -> Report {
        examine(&self.with(from, to), &BOTH, &self.env).await
    }

    /// The line that begins with `key = ` in the configuration.
    fn line(&self, key: &str) -> &str {
        self.text.lines().find(|line| line.starts_with(&format!("{key} = "))).unwrap()
    }

    async fn store(&self) -> Store {
        let url = self.line("url").split('"').nth(1).unwrap().to_owned();
        Store::open(&OpenSettings { url, connections: 1 }).await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_healthy_installation_has_nothing_broken_and_the_command_says_so() {
    let here = Installation::start().await;
    let config = here.with("", "");
    assert_eq!(roles_of(&config), BOTH);
    let account = || async {
        let report = here.examine("", "").await;
        the(&report, "issuers", "account").verdict == Verdict::Ok
    };
    until("the CA's account", account).await;
    let report = here.examine("", "").await;
    for (part, what) in [
        ("configuration", "settings of serve"),
        ("configuration", "settings of edge"),
        ("dns", "resolvers and DNSSEC"),
        ("dns", "*.app.example"),
        ("ports", "plain HTTP at 127.0.0.1"),
        ("ports", "HTTPS at 127.0.0.1"),
        ("clock", "sandbox"),
        ("issuers", "directory of sandbox"),
        ("database", "connection"),
        ("database", "schema"),
        ("database", "durability"),
        ("vault", "master key"),
        ("edges", "counted edges"),
        ("edges", "edge sandbox"),
        ("certificates", "*.app.example"),
        ("certificates", "canonical hosts"),
    ] {
        assert_eq!(the(&report, part, what).verdict, Verdict::Ok, "{:?}", the(&report, part, what));
    }
    for ours in ["server.listen", "feed.listen", "edge.plain_listen", "edge.tls_listen"] {
        assert!(the(&report, "ports", ours).seen.starts_with("taken"), "{:?}", the(&report, "ports", ours));
    }
    let file = here.world.config_file.clone();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nameplate"));
        command.arg("doctor").arg("--config").arg(&file).args(arguments).env_clear();
        command.output().unwrap()
    };
    let output = tokio::task::block_in_place(|| run(&[]));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && said.contains("ok       database      schema"), "{said}");
    let output = tokio::task::block_in_place(|| run(&["--json", "--role", "edge"]));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let parts: Vec<&str> = document["findings"].as_array().unwrap().iter().map(|f| f["part"].as_str().unwrap()).collect();
    assert_eq!(parts, ["configuration", "configuration", "ports", "ports"]);
    here.world.drain().await.unwrap();
    let output = tokio::task::block_in_place(|| run(&[]));
    let (said, why) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.code() == Some(1) && why.contains("are broken"), "{why}");
    assert!(said.contains("BROKEN") && said.contains("→"), "{said}");
    // Everything but Nameplate's own files is gone with the sandbox, and each is told of by itself.
    for gone in ["*.app.example: resolver", "directory of sandbox"] {
        assert!(said.contains(gone), "{gone} in {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_part_that_breaks_is_found_and_named() {
    let here = Installation::start().await;
    // Configuration.
    broken(&here.examine(here.line("public_url"), "").await, "configuration", "settings of serve", "server.public_url");
    broken(&here.examine(here.line("name"), "").await, "configuration", "settings of edge", "edge.name");
    let suffix = here.line("canonical_suffix");
    broken(&here.examine(suffix, "canonical_suffix = \"example\"").await, "configuration", "public suffix", "top-level");

    // DNS.
    broken(&here.examine(suffix, "canonical_suffix = \"nothing.test\"").await, "dns", "*.nothing.test", "no address");
    let silent = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let report = here.examine(here.line("resolvers"), &format!("resolvers = [\"{silent}\"]")).await;
    broken(&report, "dns", "*.app.example", "resolver");
    let unknown = here.examine("[routing]", "[routing]\napex_target = \"apex.app.nowhere.test\"").await;
    broken(&unknown, "dns", "apex.app.nowhere.test", "no address");
    let named = here.examine(here.line("public_url"), "public_url = \"https://portal.nowhere.test\"").await;
    broken(&named, "dns", "portal.nowhere.test", "no address");
    let elsewhere = here.examine(here.line("apex_addresses"), "apex_addresses = [\"192.0.2.9\"]").await;
    assert!(elsewhere.findings.iter().any(|f| f.verdict == Verdict::Warning && f.seen.contains("127.0.0.1 is not among")));

    // Ports.
    let nobody = here.examine(here.line("http_port"), &format!("http_port = {}", silent.port())).await;
    broken(&nobody, "ports", "plain HTTP at 127.0.0.1", "refused");
    let stranger = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = format!("listen = \"{}\"", stranger.local_addr().unwrap());
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = stranger.accept() {
            let _ = std::io::Write::write_all(&mut stream, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
        }
    });
    broken(&here.examine(here.line("listen"), &taken).await, "ports", "server.listen", "not Nameplate");
    let plain = here.line("plain_listen");
    broken(&here.examine(plain, &format!("plain_{taken}")).await, "ports", "edge.plain_listen", "not Nameplate");
    broken(
        &here.examine(plain, "plain_listen = \"192.0.2.1:80\"").await,
        "ports",
        "edge.plain_listen",
        "nothing can listen",
    );

    // The CA.
    let directory = here.line("directory");
    let closed = format!("directory = \"https://{silent}/directory\"");
    broken(&here.examine(directory, &closed).await, "issuers", "directory of sandbox", "refused");
    let wrong = directory.replace("/directory", "/nothing");
    broken(&here.examine(directory, &wrong).await, "issuers", "directory of sandbox", "without newNonce");
    let report = here.examine(here.line("roots_file"), "").await;
    broken(&report, "issuers", "directory of sandbox", "certificate");
    assert!(the(&report, "issuers", "directory").advice.as_ref().unwrap().contains("roots_file"));
    broken(
        &here.examine(here.line("roots_file"), "roots_file = \"/nowhere.pem\"").await,
        "issuers",
        "directory",
        "/nowhere.pem",
    );

    // One that was added, and cannot be reached; then the same when it was removed.
    let store = here.store().await;
    let spare = IssuerSeed {
        name: "spare".into(),
        directory: format!("https://{silent}/directory"),
        preference: 200,
        limits: limits::usual(),
        ..IssuerSeed::default()
    };
    let id = mint!(here.env, IssuerId);
    let mut tx = store.begin().await.unwrap();
    issuers::add(&mut tx, &spare, here.env.now(), &id).await.unwrap();
    tx.commit().await.unwrap();
    let report = here.examine("", "").await;
    broken(&report, "issuers", "directory of spare", "refused");
    assert!(
        the(&report, "issuers", "directory of spare").advice.as_ref().unwrap().contains("nameplate issuer remove spare")
    );
    let account = the(&report, "issuers", "account at spare");
    assert!(account.verdict != Verdict::Ok && account.advice.is_some(), "{account:?}");
    let mut tx = store.begin().await.unwrap();
    assert!(issuers::remove(&mut tx, &id, here.env.now()).await.unwrap());
    tx.commit().await.unwrap();
    store.close().await;
    let account = the(&here.examine("", "").await, "issuers", "account at spare").clone();
    assert!(account.verdict == Verdict::Skipped && account.seen.contains("removed"), "{account:?}");

    // Edges.
    let two = here.examine("[feed]", "[feed]\nmin_edges = 2").await;
    broken(&two, "edges", "counted edges", "1 of at least 2");
    here.world.drain().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_database_and_what_is_stored_in_it_are_looked_at() {
    let here = Installation::start().await;
    let url = here.line("url");
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name);
    let at = |name: &str| format!("url = \"sqlite:{}\"", file(name).display());
    let report = here.examine(url, &at("absent.db")).await;
    broken(&report, "database", "connection", "there is no file");
    assert_eq!(the(&report, "edges", "edges").verdict, Verdict::Skipped);
    assert!(!file("absent.db").exists(), "looking makes nothing");
    std::fs::write(file("no.db"), "no database, and long enough to be seen to be none. ".repeat(60)).unwrap();
    broken(&here.examine(url, &at("no.db")).await, "database", "connection", "not a database");
    std::fs::write(file("empty.db"), "").unwrap();
    broken(&here.examine(url, &at("empty.db")).await, "database", "schema", "older");
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let postgres = format!("url = \"postgres://nobody@{closed}/none\"");
    broken(&here.examine(url, &postgres).await, "database", "connection", "refused");

    std::fs::write(file("other.key"), "ab".repeat(32)).unwrap();
    let other = format!("master_key_file = \"{}\"", file("other.key").display());
    let report = here.examine(here.line("master_key_file"), &other).await;
    broken(&report, "vault", "master key", "opens nothing");
    assert!(!format!("{report:?}").contains("abab"));

    let store = here.store().await;
    for (change, part, what, seen) in [
        ("UPDATE issuers SET account_problem = 'the CA says no'", "issuers", "account at sandbox", "the CA says no"),
        (
            "UPDATE edges SET lost_at = heartbeat_at, heartbeat_at = heartbeat_at + 3600000000",
            "edges",
            "edge sandbox",
            "left behind",
        ),
        ("UPDATE edges SET cursor_seq = cursor_seq + 1000000", "edges", "edge sandbox", "changes ahead of the feed"),
        ("UPDATE certificates SET not_after = 1", "certificates", "*.app.example", "d), for"),
    ] {
        store.execute(sql(change)).await.unwrap();
        // The edge's own heartbeat may undo it: then it is broken once more.
        until(seen, || async {
            store.execute(sql(change)).await.unwrap();
            let report = here.examine("", "").await;
            let line = the(&report, part, what);
            line.verdict == Verdict::Broken && line.seen.contains(seen)
        })
        .await;
    }
    // What is left is held against the lifetime: a certificate of six days is no trouble on its third.
    for (hours_left, verdict) in [(72, Verdict::Ok), (24, Verdict::Warning), (4, Verdict::Broken)] {
        let until = Env::real().now() + Duration::from_secs(hours_left * 3_600);
        let lifetime = sql("UPDATE certificates SET not_after = $1, not_before = $2 WHERE source = 'import'")
            .bind(until)
            .bind(until - Duration::from_secs(6 * 86_400));
        store.execute(lifetime).await.unwrap();
        let report = here.examine("", "").await;
        assert_eq!(the(&report, "certificates", "*.app.example").verdict, verdict, "{hours_left} h left");
    }
    store.execute(sql("UPDATE issuers SET account_problem = NULL, not_before = 9000000000000000")).await.unwrap();
    let paused = here.examine("", "").await;
    let line = the(&paused, "issuers", "account at sandbox");
    assert!(line.verdict == Verdict::Warning && line.seen.contains("no orders before"), "{line:?}");
    store.execute(sql("UPDATE certificates SET destroyed_at = 1")).await.unwrap();
    let report = here.examine("", "").await;
    assert_eq!(the(&report, "certificates", "canonical hosts").verdict, Verdict::Warning);
    store
        .execute(sql("INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
         VALUES (99990101000001, 'later', TRUE, x'00', 0)"))
        .await
        .unwrap();
    broken(&here.examine("", "").await, "database", "schema", "newer");
    store.close().await;
    here.world.drain().await.unwrap();
}

/// A clock that is an hour ahead of everybody else's.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_clock_is_told_by_the_ca_and_the_edges() {
    let here = Installation::start().await;
    let ahead = Hand::new(here.env.now() + Duration::from_secs(3600), 1).env();
    let report = examine(&here.with("", ""), &BOTH, &ahead).await;
    broken(&report, "clock", "sandbox", "behind ours");
    broken(&report, "edges", "edge sandbox", "not heard of since");
    broken(&report, "edges", "counted edges", "0 of at least 1");
    here.world.drain().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn postgresql_that_forgets_and_another_clock_are_told() {
    let test = TestStore::migrated(Kind::Postgres).await;
    let text = format!("[database]\nurl = \"{}\"\n[dns]\nresolvers = [\"127.0.0.1:1\"]\ntimeout = \"1s\"\n", test.url);
    let report = examine(&read(&text), &[Role::Work], &Env::real()).await;
    // The tests' own server runs without fsync.
    broken(&report, "database", "durability", "fsync=off");
    assert!(the(&report, "database", "connection").seen.starts_with("PostgreSQL 1"));
    assert_eq!(the(&report, "clock", "the database's clock").verdict, Verdict::Ok);
    broken(&report, "vault", "master key", "vault.master_key");
    broken(&report, "configuration", "settings of work", "issuers.NAME.directory");
    let late = Hand::new(Env::real().now() - Duration::from_secs(120), 1).env();
    let report = examine(&read(&text), &[Role::Work], &late).await;
    broken(&report, "clock", "the database's clock", "ahead of ours");
    test.remove().await;
}
