//! The sandbox's own walk, with both CAs, and what a whole run prints.

use std::path::PathBuf;
use std::process::Command;

use nameplate::env::Env;
use nameplate::sandbox::check::{CheckError, CheckSettings, check};
use nameplate::sandbox::issuer::Choice;
use nameplate::sandbox::ports::Ports;
use nameplate::sandbox::world::{World, WorldSettings};
use nameplate::telemetry::Chain;

use crate::support::{secrets, services};

async fn walked(ca: Choice, settings: CheckSettings) -> (Result<(), CheckError>, String) {
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
    let world = WorldSettings { data: None, ca, ports: Ports::free().await.unwrap() };
    let mut out = Vec::new();
    let done = check(world, &settings, &Env::real(), &mut out).await;
    (done, String::from_utf8(out).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_walk_passes_with_the_test_ca_and_is_measured() {
    let (done, said) = walked(Choice::Test, CheckSettings { repeat: Some(3), json: true, ..Default::default() }).await;
    assert!(done.is_ok(), "{done:?}\n{said}");
    assert!(said.contains("https://support.acme.test answers for tenant acme"), "{said}");
    let measured: serde_json::Value = said.lines().find_map(|line| serde_json::from_str(line).ok()).unwrap();
    assert_eq!(measured["domains"], 3);
    assert!(measured["p50_ms"].as_u64().unwrap() < 3_000, "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_walk_passes_with_pebble_that_refuses_nonces() {
    let (done, said) = walked(Choice::Pebble(services::pebble_path()), CheckSettings::default()).await;
    assert!(done.is_ok(), "{done:?}\n{said}");
    assert!(said.contains("DNS, origin and pebble") && said.contains("the domain is active"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_pebble_is_told_with_the_package_to_install() {
    let (done, said) = walked(Choice::Pebble(PathBuf::from("/nowhere/pebble")), CheckSettings::default()).await;
    let error = Chain(&done.unwrap_err()).to_string();
    assert!(error.contains("apt-get install pebble"), "{error}");
    assert!(said.is_empty(), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_fails_is_named_with_what_was_seen() {
    let records = vec!["acme.test. 60 IN CAA 0 issue \";\"".to_owned()];
    let (done, said) = walked(Choice::Test, CheckSettings { records, ..Default::default() }).await;
    let Err(CheckError::Step(failed)) = done else { panic!("{done:?}\n{said}") };
    assert_eq!(failed.step, "pass the CAA check");
    assert!(failed.seen.contains("caa_") && failed.seen.contains("acme.test"), "{failed}");
    assert!(said.contains("are published") && !said.contains("certificate is stored"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_starts_again_on_its_files_and_refuses_another_master_key() {
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
    let (dir, env) = (tempfile::tempdir().unwrap(), Env::real());
    let settings =
        async || WorldSettings { data: Some(dir.path().to_owned()), ca: Choice::Test, ports: Ports::free().await.unwrap() };
    let line = "support.acme.test. 60 IN CNAME acme.app.example.";
    let world = World::start(settings().await, &env).await.unwrap();
    world.outside.zones.add(line).unwrap();
    world.drain().await.unwrap();
    let world = World::start(settings().await, &env).await.unwrap();
    assert!(world.outside.zones.records("acme.test").iter().any(|l| l == line));
    world.drain().await.unwrap();

    // One that is killed has no time to write anything.
    let world = World::start(settings().await, &env).await.unwrap();
    let added = "shop.acme.test. 60 IN CNAME acme.app.example.";
    world.outside.zones.add(added).unwrap();
    let deadline = env.now() + std::time::Duration::from_secs(10);
    while !std::fs::read_to_string(dir.path().join("acme.test.zone")).unwrap_or_default().contains(added) {
        assert!(env.now() < deadline, "the zone is not written down while it runs");
        env.sleep(std::time::Duration::from_millis(20)).await;
    }
    world.drain().await.unwrap();

    std::fs::write(dir.path().join("master.key"), "ab".repeat(32)).unwrap();
    let refused = World::start(settings().await, &env).await.err().unwrap();
    let said = Chain(&refused).to_string();
    assert!(said.contains("opens nothing of this database's vault") && !said.contains("abab"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn b88_nothing_that_a_full_run_prints_is_key_material() {
    let dir = tempfile::tempdir().unwrap();
    let run = Command::new(env!("CARGO_BIN_EXE_nameplate"))
        .args(["sandbox", "--check", "--data"])
        .arg(dir.path())
        .env("NAMEPLATE__LOG__LEVEL", "trace")
        .output()
        .unwrap();
    let printed = format!("{}{}", String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    let end: Vec<&str> = printed.lines().rev().take(5).collect();
    assert!(run.status.success(), "{end:?}");
    assert!(printed.contains("TRACE") && printed.contains("DEBUG"), "the run printed too little to search: {end:?}");
    for mark in ["PRIVATE KEY", "npo_", "npt_", "npj1.", "npe1."] {
        let line = printed.lines().find(|line| line.contains(mark));
        assert_eq!(line, None, "{mark} was printed");
    }
    // What was kept at rest outside the key's own file is sealed too.
    let mut at_rest = std::fs::read(dir.path().join("nameplate.db")).unwrap();
    at_rest.extend(std::fs::read(dir.path().join("edge/copy.sealed")).unwrap());
    let url = format!("sqlite:{}", dir.path().join("nameplate.db").display());
    for (what, bytes) in secrets::of(dir.path(), "edge", &url).await {
        secrets::not_in(&printed, &what, &bytes);
        for part in secrets::parts(&bytes) {
            assert!(!at_rest.windows(part.len()).any(|seen| seen == part), "{what} lies unsealed on the disk");
        }
    }
}
