//! The platform's own hosts: an imported certificate, at the edges.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nameplate::app::imports::{self, Files, ImportError, Imported};
use nameplate::app::tenants::{self, NewTenant};
use nameplate::env::Env;
use nameplate::model::feed::HostAction;
use nameplate::model::hostname::Hostname;
use nameplate::model::secret::Secret;
use nameplate::store::sql;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::support::feed_world::{RunningEdge, World, until};
use crate::support::visitor::{Origin, connect, get, plain};

const SUFFIX: &str = "app.test";

fn key_pem(der: &[u8]) -> Secret {
    Secret::from(format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", STANDARD.encode(der)))
}

/// Imports a certificate of the world's CA for a name.
async fn import(world: &World, name: &str, force: bool) -> Result<Imported, ImportError> {
    let (chain, key) = world.ca.leaf(name);
    import_files(world, &chain, &key_pem(&key), force).await
}

async fn import_files(world: &World, chain: &str, key: &Secret, force: bool) -> Result<Imported, ImportError> {
    let files = Files { chain, key, force };
    let done = imports::import(&world.store, &world.env, &world.vault, SUFFIX, files, "test").await;
    world.written.notify_one();
    done
}

async fn shown(edge: &RunningEdge, name: &str, world: &World) -> Option<CertificateDer<'static>> {
    let stream = connect(edge.tls, name, &world.ca.root).await.ok()?;
    stream.get_ref().1.peer_certificates().and_then(|c| c.first().cloned())
}

async fn leaf_of(world: &World, done: &Imported) -> CertificateDer<'static> {
    let stmt = sql("SELECT chain FROM certificates WHERE id = $1").bind(done.certificate.id.as_str());
    let chain = world.store.query(stmt).await.unwrap()[0].text("chain").unwrap();
    CertificateDer::from_pem_slice(chain.as_bytes()).unwrap()
}

async fn add_tenant(world: &World, slug: &str) {
    let host = |slug: &nameplate::model::slug::Slug| Some(Hostname::trusted(&format!("{slug}.{SUFFIX}")));
    tenants::add(&world.store, &world.env, NewTenant { slug, name: None }, host, "test").await.unwrap();
    world.written.notify_one();
}

/// Field case B69, with what an operator brings.
#[tokio::test]
async fn b69_an_imported_wildcard_serves_every_canonical_host_and_nobody_else() {
    let world = World::new().await;
    let origin = Origin::start().await;
    add_tenant(&world, "globex").await;
    let edge = world.edge("edge-1", origin.at).await;
    world.rolled_out("host", "globex.app.test").await;
    assert!(shown(&edge, "globex.app.test", &world).await.is_none(), "nothing was imported yet");
    let ask = |host: &str| format!("GET /x HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    assert!(plain(edge.plain, &ask("globex.app.test")).await.starts_with("HTTP/1.1 404"));

    let wildcard = import(&world, "*.app.test", false).await.unwrap();
    assert!(wildcard.new && (wildcard.covered, wildcard.uncovered) == (1, 0));
    world.rolled_out("certificate", wildcard.certificate.id.as_str()).await;
    let answer = get(edge.tls, "globex.app.test", &world.ca.root, "/", "").await;
    assert!(answer.contains("x-tenant-slug=globex"), "{answer}");
    let redirect = plain(edge.plain, &ask("globex.app.test")).await;
    assert!(redirect.contains("location: https://globex.app.test:8443/x"), "{redirect}");

    // A tenant that comes later is served without another import; whoever has no route is shown nothing.
    add_tenant(&world, "initech").await;
    world.rolled_out("host", "initech.app.test").await;
    assert_eq!(shown(&edge, "initech.app.test", &world).await, Some(leaf_of(&world, &wildcard).await));
    for stranger in ["nobody.app.test", "app.test", "x.globex.app.test", "globex.app.test.evil.test"] {
        assert!(shown(&edge, stranger, &world).await.is_none(), "{stranger}");
        assert!(plain(edge.plain, &ask(stranger)).await.starts_with("HTTP/1.1 404"), "{stranger}");
    }
    // A name with a certificate of its own is never shown the platform's, even where that would cover it.
    world.route("own.app.test", HostAction::Serve, Some(&world.certificate("other.test").await), 1).await;
    world.rolled_out("host", "own.app.test").await;
    assert!(shown(&edge, "own.app.test", &world).await.is_none());

    let exact = import(&world, "globex.app.test", false).await.unwrap();
    assert!(exact.replaced.is_empty());
    world.rolled_out("certificate", exact.certificate.id.as_str()).await;
    assert_eq!(shown(&edge, "globex.app.test", &world).await, Some(leaf_of(&world, &exact).await));
    assert_eq!(shown(&edge, "initech.app.test", &world).await, Some(leaf_of(&world, &wildcard).await));

    // An edge that starts from nothing, and one that starts from its copy, know the same.
    let second = world.edge("edge-2", origin.at).await;
    until("the second edge", || async { shown(&second, "globex.app.test", &world).await.is_some() }).await;
    second.stop().await;
    let alone = RunningEdge::start(&world.dir.path().join("edge-2"), "edge-2", origin.at, None).await;
    until("the copy", || async { shown(&alone, "initech.app.test", &world).await.is_some() }).await;
    alone.stop().await;
    edge.stop().await;
}

#[tokio::test]
async fn a_newer_import_takes_over_without_one_refused_handshake() {
    let world = Arc::new(World::new().await);
    let origin = Origin::start().await;
    add_tenant(&world, "globex").await;
    let first = import(&world, "*.app.test", false).await.unwrap();
    let edge = Arc::new(world.edge("edge-1", origin.at).await);
    world.rolled_out("certificate", first.certificate.id.as_str()).await;
    world.rolled_out("host", "globex.app.test").await;

    let stop = Arc::new(AtomicBool::new(false));
    let visits = tokio::spawn({
        let (world, edge, stop) = (Arc::clone(&world), Arc::clone(&edge), Arc::clone(&stop));
        async move {
            let mut visits = 0;
            while !stop.load(Ordering::Relaxed) {
                assert!(shown(&edge, "globex.app.test", &world).await.is_some(), "after {visits} visits");
                visits += 1;
            }
            visits
        }
    });
    let mut last = first.clone();
    for _ in 0..5 {
        let next = import(&world, "*.app.test", false).await.unwrap();
        assert_eq!(next.replaced, [last.certificate.id.clone()]);
        let leaf = leaf_of(&world, &next).await;
        until("the newer one is shown", || async { shown(&edge, "globex.app.test", &world).await == Some(leaf.clone()) })
            .await;
        last = next;
    }
    stop.store(true, Ordering::Relaxed);
    assert!(visits.await.unwrap() > 5);
    let keys = sql("SELECT id FROM certificates WHERE source = 'import' AND sealed_key IS NOT NULL");
    assert_eq!(world.store.query(keys).await.unwrap().len(), 1, "the keys of those before are destroyed");
    let events = sql("SELECT detail FROM events WHERE kind = 'certificate_imported' ORDER BY id");
    let events = world.store.query(events).await.unwrap();
    assert!(events.len() == 6 && events[5].text("detail").unwrap().contains("\"not_after\":\"4096"));
}

#[tokio::test]
async fn what_would_leave_hosts_without_a_certificate_needs_force_and_bad_files_change_nothing() {
    let world = World::new().await;
    for slug in ["globex", "initech"] {
        add_tenant(&world, slug).await;
    }
    let stored = async || {
        let rows =
            world.store.query(sql("SELECT id FROM certificates UNION ALL SELECT id FROM outbox WHERE kind = 'certificate'"));
        rows.await.unwrap().len()
    };
    let said = import(&world, "*.elsewhere.test", true).await.unwrap_err().to_string();
    assert!(said.contains("*.elsewhere.test") && said.contains("*.app.test"), "{said}");
    assert!(matches!(import(&world, "deep.globex.app.test", false).await, Err(ImportError::OtherZone { .. })));
    let (chain, _) = world.ca.leaf("*.app.test");
    let (_, other) = world.ca.leaf("*.app.test");
    assert!(matches!(import_files(&world, &chain, &key_pem(&other), true).await, Err(ImportError::Files(_))));
    assert_eq!(stored().await, 0);

    let (chain, key) = world.ca.leaf("*.app.test");
    let first = import_files(&world, &chain, &key_pem(&key), false).await.unwrap();
    let again = import_files(&world, &chain, &key_pem(&key), false).await.unwrap();
    assert!(!again.new && again.certificate == first.certificate && stored().await == 2);

    // The same names, one of them gone: both hosts were covered by the star, one is not any more.
    let (chain, key) = two_names(&world, "*.app.test", "globex.app.test");
    let both = import_files(&world, &chain, &key_pem(&key), false).await.unwrap();
    assert_eq!(both.replaced, [first.certificate.id]);
    let said = import(&world, "globex.app.test", false).await.unwrap_err().to_string();
    assert!(said.contains("1 hosts") && said.contains("initech.app.test"), "{said}");
    let forced = import(&world, "globex.app.test", true).await.unwrap();
    assert_eq!((forced.covered, forced.uncovered, forced.replaced), (1, 1, vec![both.certificate.id]));
    let (listed, uncovered) = imports::list(&world.store).await.unwrap();
    assert_eq!((listed.len(), listed[0].hosts, uncovered), (1, 1, 1));
}

fn two_names(world: &World, one: &str, two: &str) -> (String, Vec<u8>) {
    world.ca.leaf_of(&[one, two])
}

#[tokio::test]
async fn a_deleted_tenants_hosts_are_unknown_at_once_whatever_their_routes_say() {
    let world = World::new().await;
    let origin = Origin::start().await;
    let certificate = world.serve("support.acme.test").await;
    let edge = world.edge("edge-1", origin.at).await;
    world.rolled_out("certificate", certificate.as_str()).await;
    world.rolled_out("host", "support.acme.test").await;
    assert!(shown(&edge, "support.acme.test", &world).await.is_some());
    let deleted = sql("UPDATE tenants SET status = 'deleted', version = 2 WHERE id = $1").bind(world.tenant.as_str());
    world.store.execute(deleted).await.unwrap();
    world.announce("tenant", world.tenant.as_str(), 2).await;
    world.rolled_out("tenant", world.tenant.as_str()).await;
    assert!(shown(&edge, "support.acme.test", &world).await.is_none());
    assert_eq!(edge.view.status().serving, 0);
    edge.stop().await;
}

#[test]
fn the_command_imports_lists_and_says_what_is_wrong() {
    let (env, dir) = (Env::real(), tempfile::tempdir().unwrap());
    let ca = nameplate::sandbox::ca::Authority::generate("Bought").unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    let (chain, key) = ca.identity_pem(&["*.app.example".to_owned()], env.draw(), env.now(), 10).unwrap();
    write("chain.pem", &chain);
    write("key.pem", &key);
    write("not.pem", "nothing");
    let run = |line: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_nameplate"));
        command.args(line.split_whitespace()).env_clear().current_dir(dir.path());
        command
            .env("NAMEPLATE__ROUTING__CANONICAL_SUFFIX", "app.example")
            .env("NAMEPLATE__VAULT__MASTER_KEY", "07".repeat(32));
        let output = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    };
    assert_eq!(run("migrate").0, Some(0));
    assert_eq!(run("tenant add acme").0, Some(0));
    let (code, said) = run("certificate import --chain not.pem --key key.pem");
    assert!(code == Some(1) && said.contains("the chain file holds 0 certificates"), "{said}");
    let (code, said) = run("certificate import --chain absent.pem --key key.pem");
    assert!(code == Some(1) && said.contains("absent.pem cannot be read"), "{said}");
    let (code, said) = run("certificate import --chain chain.pem --key key.pem");
    assert!(code == Some(0) && said.contains("Imported *.app.example as crt_"), "{said}");
    assert!(said.contains("with a certificate: 1; without: 0"), "{said}");
    assert!(run("certificate import --chain chain.pem --key key.pem").1.contains("in use already"));
    let (code, said) = run("certificate list");
    assert!(code == Some(0) && said.contains("*.app.example") && said.contains("d: import its successor"), "{said}");
    let listed: serde_json::Value = serde_json::from_str(&run("certificate list --json").1).unwrap();
    assert_eq!((&listed["certificates"][0]["hosts"], &listed["hosts_uncovered"]), (&1.into(), &0.into()));
    assert!((9..=10).contains(&listed["certificates"][0]["days_left"].as_i64().unwrap()));
}
