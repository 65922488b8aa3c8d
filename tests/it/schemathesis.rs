//! The description of the API held against the API itself, by requests that nobody thought of.

use std::path::Path;
use std::process::Command;

use nameplate::env::Env;
use nameplate::sandbox::issuer::Choice;
use nameplate::sandbox::ports::Ports;
use nameplate::sandbox::world::{World, WorldSettings};

use crate::support::services;

#[tokio::test(flavor = "multi_thread")]
async fn no_request_breaks_the_api_or_its_description() {
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
    let settings = WorldSettings { data: None, ca: Choice::Test, ports: Ports::free().await.unwrap() };
    let world = World::start(settings, &Env::real()).await.unwrap();
    let api = world.api().unwrap();
    api.add_tenant("acme").await.unwrap();
    api.claim("acme", "support.acme.test").await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(services::schemathesis());
    command
        .current_dir(dir.path())
        .arg("--config-file")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schemathesis.toml"))
        .args(["run", &format!("{}/api/openapi.json", world.url()), "--no-color", "--seed", "1", "--checks", "all"])
        .args(["--max-examples", "15", "--phases", "examples,coverage,fuzzing", "--workers", "2"])
        .args(["--header", &format!("Authorization: Bearer {}", world.operator.expose_str().unwrap())]);
    let done = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let said = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    let tried = said.split("Test cases:").nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap_or_default();
    assert!(tried.parse::<u32>().is_ok_and(|tried| tried > 1_000), "only {tried:?} requests were tried\n{said}");
    world.drain().await.unwrap();
}
