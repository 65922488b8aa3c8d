//! `nameplate import` as people run it, against a server that judges rows.

use std::io::{BufRead as _, Read as _};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

use nameplate::app::bulk;
use nameplate::env::Env;
use nameplate::jobs::schedule::Schedule;
use nameplate::model::alert::loops;
use nameplate::store::sql;
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::support::web::Web;

/// How long rows may stay unnoticed, and their judging may take to stop.
const GRACE: Duration = Duration::from_secs(3);

/// The binary beside a server.
struct Shell {
    home: TempDir,
    server: String,
    token: String,
}

impl Shell {
    fn run(&self, line: &str) -> (Option<i32>, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nameplate"));
        command.args(line.split_whitespace()).env_clear().current_dir(self.home.path());
        command.env("NAMEPLATE_SERVER", &self.server).env("NAMEPLATE_TOKEN", &self.token);
        let Output { status, stdout, stderr } = command.output().unwrap();
        (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.home.path().join(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.home.path().join(Path::new(name))).unwrap()
    }
}

/// Runs commands beside a server whose rows are judged meanwhile.
async fn beside(web: Web, token: String, commands: impl FnOnce(&Shell) + Send + 'static) -> Web {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(nameplate::web::serve(listener, web.router.clone(), Env::real(), async {
        let _ = stopped.await;
    }));
    let (app, judged) = (web.rig.app.clone(), CancellationToken::new());
    // As in a process: whenever the bell of the imports rings.
    let bell = Arc::clone(&app.bells.imports);
    let schedule = Schedule::new(&Env::real(), GRACE).when(loops::IMPORTS, bell, move || {
        let app = app.clone();
        async move { Ok(bulk::round(&app).await.unwrap()) }
    });
    let judging = tokio::spawn(schedule.run(judged.clone()));
    tokio::task::spawn_blocking(move || commands(&Shell { home: tempfile::tempdir().unwrap(), server, token }))
        .await
        .unwrap();
    judged.cancel();
    assert_eq!(judging.await.unwrap(), 0, "rows were judged to the end");
    stop.send(()).unwrap();
    serving.await.unwrap().unwrap();
    web
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_checked_imported_and_taken_away_and_the_exit_code_tells() {
    let web = Web::new(551).await;
    let operator = web.operator.clone();
    web.tenant("acme").await;
    let web = beside(web, operator, |shell| {
        shell.write("good.csv", "hostname;tenant\na.acme.test;acme\nb.acme.test;acme\n");
        shell.write("mixed.csv", "hostname,tenant\na.acme.test,acme\nhttps://c.acme.test/,acme\nd.acme.test,fresh\n");
        shell.write("none.csv", "a.acme.test,acme\n");
        shell.write("rows.jsonl", "{\"hostname\":\"e.acme.test\"}\n");
        let (code, out, err) = shell.run("import good.csv --dry-run");
        assert_eq!(code, Some(0), "{out}{err}");
        assert!(out.contains("2 would be claimed") && out.contains("to claim them: nameplate imports start imp_"), "{out}");
        let (code, out, err) = shell.run("import good.csv");
        assert_eq!(code, Some(0), "{out}{err}");
        assert!(out.contains("2 rows: 2 claimed") && out.contains("2 orders for names under 1 registered domain;"), "{out}");
        let (code, out, err) = shell.run("import mixed.csv --results out.csv");
        assert_eq!((code, err.lines().last()), (Some(3), Some("nameplate: 2 of 3 rows were not taken")), "{out}");
        assert!(
            out.contains("line 3: https://c.acme.test/: ") && out.contains("line 4: d.acme.test: There is no tenant"),
            "{out}"
        );
        assert_eq!(shell.read("out.csv").lines().count(), 4);
        // What is there and is no file is written to as it is.
        let (code, out, _) = shell.run("import mixed.csv --results /dev/stdout");
        let verdicts = shell.read("out.csv").lines().filter(|line| out.contains(line)).count();
        assert_eq!((code, verdicts), (Some(3), 4), "{out}");
        let (code, out, err) = shell.run("import mixed.csv --create-tenants --json");
        assert_eq!(code, Some(3), "{err}");
        let shown: Value = serde_json::from_str(&out).unwrap();
        assert_eq!((&shown["verdicts"]["claimed"], &shown["tenants_added"]), (&1.into(), &1.into()));
        let (code, _, err) = shell.run("import none.csv");
        assert!(code == Some(1) && err.contains("nothing was imported") && err.contains("(header_missing)"), "{err}");
        let (code, _, err) = shell.run("import rows.jsonl");
        assert_eq!(code, Some(3), "an operator's rows name their tenant: {err}");
        let (code, out, err) = shell.run("import rows.jsonl --tenant acme --results out.ndjson");
        assert_eq!(code, Some(0), "{out}{err}");
        let row: Value = serde_json::from_str(shell.read("out.ndjson").trim()).unwrap();
        assert_eq!(row["verdict"], "claimed");
        let (code, _, err) = shell.run("import missing.csv");
        assert!(code == Some(1) && err.contains("missing.csv cannot be read"), "{err}");

        let (_, out, _) = shell.run("imports list --json");
        let listed: Value = serde_json::from_str(&out).unwrap();
        let of = |name: &str, dry: bool, claimed: i64| -> String {
            let fits = |one: &&Value| one["name"] == name && one["dry_run"] == dry && one["verdicts"]["claimed"] == claimed;
            listed.as_array().unwrap().iter().find(fits).unwrap()["id"].as_str().unwrap().to_owned()
        };
        let (code, out, _) = shell.run("imports list");
        assert!(
            code == Some(0) && out.starts_with("NAME") && out.contains("good.csv") && out.contains("done (dry run)"),
            "{out}"
        );
        let newest = of("rows.jsonl", false, 1);
        let (code, out, _) = shell.run(&format!("imports records {newest}"));
        assert!(code == Some(0) && out.contains("e.acme.test. 300 IN CNAME acme.app.example."), "{out}");
        let (code, out, _) = shell.run(&format!("imports results {newest} --format ndjson"));
        assert!(code == Some(0) && out.contains("\"verdict\":\"claimed\""), "{out}");
        for to in ["pause", "resume"] {
            let (code, out, err) = shell.run(&format!("imports {to} {newest}"));
            assert!(code == Some(0) && out.contains("rows.jsonl"), "{to}: {out} {err}");
        }
        let dry = of("good.csv", true, 0);
        let (code, _, err) = shell.run(&format!("imports pause {dry}"));
        assert!(code == Some(1) && err.contains("(import_not_turned)"), "{err}");
        let (code, out, _) = shell.run(&format!("imports start {dry}"));
        assert!(code == Some(0) && out.contains("good.csv"), "{out}");
        let (code, _, err) = shell.run("imports show imp_00000000000000000000000000000000");
        assert!(code == Some(1) && err.contains("(import_not_found)"), "{err}");
    })
    .await;
    assert_eq!(web.rig.count(sql("SELECT count(*) AS n FROM domains")).await, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_command_follows_an_import_that_was_left() {
    let web = Web::new(552).await;
    let (_, token) = web.tenant("acme").await;
    let file = "hostname\na.acme.test\nb.acme.test\n";
    // Somebody sent it, and left: it is held so that it cannot be over too soon.
    let sent = super::bulk::send(&web, &token, "", "text/csv", file).await.json();
    let id = sent["id"].as_str().unwrap().to_owned();
    let held = web.api(&token, "POST", &format!("/api/v1/imports/{id}/pause"), None).await;
    assert_eq!(held.status, 200);
    let resumed = web.router.clone();
    let (bearer, path) = (token.clone(), format!("/api/v1/imports/{id}/resume"));
    let web = beside(web, token, move |shell| {
        shell.write("names.csv", file);
        let mut child = Command::new(env!("CARGO_BIN_EXE_nameplate"))
            .args(["import", "names.csv", "--json"])
            .env_clear()
            .current_dir(shell.home.path())
            .env("NAMEPLATE_SERVER", &shell.server)
            .env("NAMEPLATE_TOKEN", &shell.token)
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        // It says that it follows before anything moves on.
        let mut said = std::io::BufReader::new(child.stderr.take().unwrap());
        let mut first = String::new();
        said.read_line(&mut first).unwrap();
        assert!(first.contains("being imported already") && first.contains("following it"), "{first}");
        let request = axum::http::Request::builder()
            .method("POST")
            .uri(path)
            .header("authorization", format!("Bearer {bearer}"))
            .body(axum::body::Body::empty())
            .unwrap();
        let handle = tokio::runtime::Handle::current();
        assert_eq!(handle.block_on(Web::send_to(&resumed, request)).status, 200);
        let output = child.wait_with_output().unwrap();
        let mut err = String::new();
        said.read_to_string(&mut err).unwrap();
        assert_eq!(output.status.code(), Some(0), "{err}");
        let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&shown["verdicts"]["claimed"], &shown["state"]), (&2.into(), &"done".into()));
    })
    .await;
    assert_eq!(web.rig.count(sql("SELECT count(*) AS n FROM imports")).await, 1, "nothing was sent again");
    assert_eq!(web.rig.count(sql("SELECT count(*) AS n FROM domains")).await, 2);
}

/// An import is done once its rows are judged, long before its claims are live.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_again_follows_the_claims_of_an_import_that_is_done() {
    let web = Web::new(557).await;
    let operator = web.operator.clone();
    web.tenant("acme").await;
    let web = beside(web, operator, |shell| {
        shell.write("good.csv", "hostname,tenant\na.acme.test,acme\n");
        let (code, out, err) = shell.run("import good.csv");
        assert_eq!(code, Some(0), "{out}{err}");
        let mut command = Command::new(env!("CARGO_BIN_EXE_nameplate"));
        command.args(["import", "good.csv", "--wait"]).env_clear().current_dir(shell.home.path());
        command.env("NAMEPLATE_SERVER", &shell.server).env("NAMEPLATE_TOKEN", &shell.token);
        let mut waiting = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        std::io::BufReader::new(waiting.stderr.take().unwrap()).read_line(&mut said).unwrap();
        assert!(said.contains("This file was imported already, as imp_") && said.contains("following it"), "{said}");
        assert!(waiting.try_wait().unwrap().is_none(), "its claim waits for DNS, and so does the command");
        waiting.kill().unwrap();
        waiting.wait().unwrap();
        // Without --wait the file is sent anew: somebody may want its verdicts of today.
        let (code, out, err) = shell.run("import good.csv");
        assert_eq!(code, Some(0), "{out}{err}");
        assert!(out.contains("1 yours already"), "{out}{err}");
    })
    .await;
    let imports = web.rig.app.store.query(sql("SELECT id FROM imports")).await.unwrap();
    assert_eq!(imports.len(), 2, "waiting sends nothing");
}

/// Waits for a line of a child's standard error.
fn line_with(from: &mut impl std::io::BufRead, words: &str) -> String {
    let mut line = String::new();
    loop {
        line.clear();
        assert!(from.read_line(&mut line).unwrap() > 0, "it ended without saying: {words}");
        if line.contains(words) {
            return line;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_stops_waiting_is_told_what_goes_on_and_keeps_the_verdicts() {
    let web = Web::new(557).await;
    let operator = web.operator.clone();
    web.tenant("acme").await;
    let web = beside(web, operator, |shell| {
        shell.write("good.csv", "hostname,tenant\na.acme.test,acme\nhttps://b.acme.test/,acme\n");
        let mut child = Command::new(env!("CARGO_BIN_EXE_nameplate"))
            .args(["import", "good.csv", "--wait", "--results", "out.csv"])
            .env_clear()
            .current_dir(shell.home.path())
            .env("NAMEPLATE_SERVER", &shell.server)
            .env("NAMEPLATE_TOKEN", &shell.token)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut err = std::io::BufReader::new(child.stderr.take().unwrap());
        line_with(&mut err, "Waiting until each name");
        let stopped = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        assert!(stopped.success());
        let mut rest = String::new();
        err.read_to_string(&mut rest).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130), "{rest}");
        for words in [
            "Stopped following imp_",
            "goes on at the server",
            "run the same command",
            "nameplate imports show imp_",
            "nameplate imports pause imp_",
            "The verdicts so far are in out.csv.",
        ] {
            assert!(rest.contains(words), "{words} is not in {rest}");
        }
        assert_eq!(shell.read("out.csv").lines().count(), 3);
        assert!(!shell.home.path().join("out.csv.part").exists());
        // Where they cannot be written, that is said, and nothing half written stays.
        let (code, _, err) = shell.run("import good.csv --results missing/out.csv");
        assert!(code == Some(1) && err.contains("missing/out.csv cannot be written"), "{err}");
        // One that was given up is not waited for.
        let id = rest.split("Stopped following ").nth(1).unwrap().split(';').next().unwrap().to_owned();
        assert_eq!(shell.run(&format!("imports cancel {id}")).0, Some(0));
    })
    .await;
    assert_eq!(web.rig.count(sql("SELECT count(*) AS n FROM domains WHERE lane = 'bulk'")).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_stops_while_the_file_is_sent_is_told_that_nothing_was_imported() {
    // A server that takes the file and never answers.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let silent = std::thread::spawn(move || {
        let (mut first, _) = listener.accept().unwrap();
        let mut seen = [0; 4096];
        let _ = first.read(&mut seen).unwrap();
        first
    });
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("good.csv"), "hostname\na.acme.test\n").unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_nameplate"))
        .args(["import", "good.csv", "--results", "out.csv"])
        .env_clear()
        .current_dir(home.path())
        .env("NAMEPLATE_SERVER", &server)
        .env("NAMEPLATE_TOKEN", "npo_x")
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let held = tokio::task::spawn_blocking(move || silent.join().unwrap()).await.unwrap();
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{err}");
    assert!(err.contains("what does not arrive whole is not imported") && err.contains("out.csv was not written"), "{err}");
    drop(held);
}
