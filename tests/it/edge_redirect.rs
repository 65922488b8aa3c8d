//! One half of a pair sends its visitors to the other, on a real edge: only to a name that is served there.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nameplate::env::Env;
use nameplate::feed::copy::Copy;
use nameplate::model::feed::{Entry, HostAction};
use nameplate::model::id::TenantId;
use nameplate::model::secret::Secret;
use nameplate::store::sql;
use nameplate::vault::distribution::{DistributionKey, EdgeKeyPair, Label};

use crate::support::feed_world::{RunningEdge, World, until};
use crate::support::visitor::{Origin, connect, exchange, get, plain};

const APEX: &str = "acme.test";
const WWW: &str = "www.acme.test";

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or("no answer")
}

/// The apex is served and redirects to its `www`, which is not served yet.
async fn redirecting() -> (World, Origin, RunningEdge) {
    let world = World::new().await;
    let origin = Origin::start().await;
    world.serve(APEX).await;
    redirect(&world, APEX, Some(WWW), 2).await;
    let edge = world.edge("edge-1", origin.at).await;
    world.rolled_out("host", APEX).await;
    (world, origin, edge)
}

async fn redirect(world: &World, from: &str, to: Option<&str>, version: i64) {
    let stmt = sql("UPDATE routes SET redirect_to = $2, version = $3 WHERE hostname = $1");
    world.store.execute(stmt.bind(from).bind(to).bind(version)).await.unwrap();
    world.announce("host", from, version).await;
}

#[tokio::test]
async fn visitors_are_sent_on_only_while_the_other_name_is_served() {
    let (world, _origin, edge) = redirecting().await;
    let ask = async |path: &str| get(edge.tls, APEX, &world.ca.root, path, "").await;
    assert_eq!(status(&ask("/a").await), "200", "the other name is not served: nobody lands on a dead one");
    let certificate = world.serve(WWW).await;
    world.rolled_out("host", WWW).await;
    let answer = ask("/a/b?c=d&e=%2F").await;
    assert_eq!(status(&answer), "308", "{answer}");
    assert!(answer.contains("location: https://www.acme.test:8443/a/b?c=d&e=%2F\r\n"), "{answer}");
    assert!(!answer.contains("origin:"), "{answer}");
    for odd in ["//evil.example/x", "/@evil.example", "/x?https://evil.example"] {
        let answer = ask(odd).await;
        assert!(answer.contains(&format!("location: https://www.acme.test:8443{odd}\r\n")), "{answer}");
    }
    // The other name is served itself, and the plain port leads to the same name over https first.
    assert_eq!(status(&get(edge.tls, WWW, &world.ca.root, "/a", "").await), "200");
    let first = plain(edge.plain, "GET /a HTTP/1.1\r\nHost: acme.test\r\nConnection: close\r\n\r\n").await;
    assert!(first.contains("location: https://acme.test:8443/a\r\n"), "{first}");
    // A method is kept: 308. What is no path is not redirected.
    let send = async |request: &str| exchange(connect(edge.tls, APEX, &world.ca.root).await.unwrap(), request).await;
    let post = send("POST /form HTTP/1.1\r\nHost: acme.test\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc").await;
    assert_eq!(status(&post), "308", "{post}");
    let star = send("OPTIONS * HTTP/1.1\r\nHost: acme.test\r\nConnection: close\r\n\r\n").await;
    assert_eq!(status(&star), "200", "{star}");
    let wrong = send("GET / HTTP/1.1\r\nHost: www.acme.test\r\nConnection: close\r\n\r\n").await;
    assert_eq!(status(&wrong), "421", "{wrong}");

    // The other name goes: the redirect ends in the same moment, whatever this host's entry still says.
    world.route(WWW, HostAction::Gone, None, 2).await;
    world.rolled_out("host", WWW).await;
    assert_eq!(status(&ask("/a").await), "200");
    world.route(WWW, HostAction::Serve, Some(&certificate), 3).await;
    world.rolled_out("host", WWW).await;
    assert_eq!(status(&ask("/a").await), "308");
    redirect(&world, APEX, None, 3).await;
    world.rolled_out("host", APEX).await;
    assert_eq!(status(&ask("/a").await), "200");
    edge.stop().await;
}

/// Two names that send visitors to each other send nobody anywhere; neither does one that leads to another tenant's.
#[tokio::test]
async fn no_loops_and_no_other_tenants() {
    let (world, _origin, edge) = redirecting().await;
    world.serve(WWW).await;
    redirect(&world, WWW, Some(APEX), 2).await;
    world.rolled_out("host", WWW).await;
    for name in [APEX, WWW] {
        assert_eq!(status(&get(edge.tls, name, &world.ca.root, "/", "").await), "200", "{name}");
    }
    redirect(&world, WWW, None, 3).await;
    world.rolled_out("host", WWW).await;
    assert_eq!(status(&get(edge.tls, APEX, &world.ca.root, "/", "").await), "308");
    let other: TenantId = other_tenant(&world).await;
    let moved = sql("UPDATE routes SET tenant_id = $2, version = 4 WHERE hostname = $1");
    world.store.execute(moved.bind(WWW).bind(other.as_str())).await.unwrap();
    world.announce("host", WWW, 4).await;
    world.rolled_out("host", WWW).await;
    assert_eq!(status(&get(edge.tls, APEX, &world.ca.root, "/", "").await), "200");
    redirect(&world, APEX, Some(APEX), 3).await;
    world.rolled_out("host", APEX).await;
    assert_eq!(status(&get(edge.tls, APEX, &world.ca.root, "/", "").await), "200");
    edge.stop().await;
}

async fn other_tenant(world: &World) -> TenantId {
    let id = nameplate::mint!(world.env, TenantId);
    let stmt = sql("INSERT INTO tenants (id, slug, name, region, stamp, shard, tier, status, version, created_at) \
         VALUES ($1, 'beta', 'Beta', 'eu', 'eu-1', 0, 'standard', 'active', 1, 0)");
    world.store.execute(stmt.bind(id.as_str())).await.unwrap();
    world.announce("tenant", id.as_str(), 1).await;
    id
}

/// A wildcard of one tenant beside another's exact name: each is served for its own, whatever becomes of certificates.
#[tokio::test]
async fn an_exact_name_wins_over_another_tenants_wildcard() {
    let world = World::new().await;
    let origin = Origin::start().await;
    let exact = world.serve("shop.acme.test").await;
    let other = other_tenant(&world).await;
    let (chain, key) = world.ca.leaf("*.acme.test");
    let wild = world.store_certificate("*.acme.test", &chain, key).await;
    world.announce("certificate", wild.as_str(), 1).await;
    world.route("*.acme.test", HostAction::Serve, Some(&wild), 1).await;
    let whose = sql("UPDATE routes SET tenant_id = $1 WHERE hostname = '*.acme.test'").bind(other.as_str());
    world.store.execute(whose).await.unwrap();
    let edge = world.edge("edge-1", origin.at).await;
    world.rolled_out("certificate", exact.as_str()).await;
    world.rolled_out("host", "*.acme.test").await;
    let ask = async |name: &str| get(edge.tls, name, &world.ca.root, "/", "").await;
    let (shop, blog) = (ask("shop.acme.test").await, ask("blog.acme.test").await);
    assert!(shop.contains(&format!("x-tenant-id={}", world.tenant)), "{shop}");
    assert!(blog.contains(&format!("x-tenant-id={other}")), "{blog}");
    assert!(connect(edge.tls, "a.blog.acme.test", &world.ca.root).await.is_err(), "a star is one label");
    assert!(connect(edge.tls, "acme.test", &world.ca.root).await.is_err());
    // The exact name without a certificate shows nobody else's.
    world.route("shop.acme.test", HostAction::Serve, None, 2).await;
    world.rolled_out("host", "shop.acme.test").await;
    until("the alert", || async { connect(edge.tls, "shop.acme.test", &world.ca.root).await.is_err() }).await;
    edge.stop().await;
}

/// A copy that an earlier build wrote knows of no redirects: it is served from, and replaced at the first word with the control
/// plane, although no entry is newer.
#[tokio::test]
async fn redirects_reach_an_edge_that_was_upgraded() {
    let (world, origin, edge) = redirecting().await;
    world.serve(WWW).await;
    world.rolled_out("host", WWW).await;
    assert_eq!(status(&get(edge.tls, APEX, &world.ca.root, "/", "").await), "308");
    edge.stop().await;
    let state = world.dir.path().join("edge-1");
    write_as_an_earlier_build_did(&state, &world.env);
    let edge = RunningEdge::start(&state, "edge-1", origin.at, None).await;
    until("the redirect", || async { status(&get(edge.tls, APEX, &world.ca.root, "/", "").await) == "308" }).await;
    edge.stop().await;
}

fn write_as_an_earlier_build_did(state: &Path, env: &Env) {
    let member: serde_json::Value = serde_json::from_slice(&std::fs::read(state.join("member.json")).unwrap()).unwrap();
    let private = URL_SAFE_NO_PAD.decode(member["private_key"].as_str().unwrap()).unwrap();
    let own = EdgeKeyPair::from_private(Secret::new(private)).unwrap();
    let restored = Copy::new(state, env.clone()).load(&own).unwrap().unwrap();
    assert!(!restored.outdated);
    let mut snapshot = restored.book.to_snapshot();
    for entry in &mut snapshot.entries {
        if let Entry::Host(host) = entry {
            host.redirect_to = None;
        }
    }
    let keys: Vec<Vec<u8>> = restored.keys.iter().map(|k| k.as_bytes().to_vec()).collect();
    let plain = Secret::new(serde_json::to_vec(&serde_json::json!({ "snapshot": snapshot, "keys": keys })).unwrap());
    let key = DistributionKey::generate(env);
    let wrapped = key.wrap_for(env, &own.public()).unwrap();
    let sealed = key.seal(env, Label { kind: "copy", id: "snapshot", version: 0 }, &plain).unwrap();
    let length = u32::try_from(wrapped.as_bytes().len()).unwrap().to_be_bytes();
    std::fs::write(state.join("copy.sealed"), [&length, wrapped.as_bytes(), sealed.as_bytes()].concat()).unwrap();
    std::fs::remove_file(state.join("copy.journal")).unwrap();
    assert!(Copy::new(state, env.clone()).load(&own).unwrap().unwrap().outdated);
}
