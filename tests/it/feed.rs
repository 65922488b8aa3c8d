//! The feed between a real publisher and real readers: enrolment, order, gaps, epochs, revocation, rollout.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use nameplate::env::Env;
use nameplate::feed::Feed;
use nameplate::feed::client::{ClientError, FeedClient};
use nameplate::feed::follow::{Follower, Observer};
use nameplate::feed::join::JoinToken;
use nameplate::feed::member::Member;
use nameplate::feed::replica::Replica;
use nameplate::feed::wire::{Exception, Message};
use nameplate::mint;
use nameplate::model::feed::{Entry, HostAction, Position};
use nameplate::model::feed_apply::Served;
use nameplate::model::id::{CertificateId, EdgeId, EventId};
use nameplate::store::edges::{self, EdgeStatus};
use nameplate::store::{outbox, sql};
use tokio_util::sync::CancellationToken;

use crate::support::feed_world::{World, until};
use crate::support::probed::{self, Shown};

/// A member that was let in, and its line.
async fn enrolled(world: &World, name: &str) -> (Member, FeedClient) {
    enrolled_in(world, name, name).await
}

async fn enrolled_in(world: &World, dir: &str, name: &str) -> (Member, FeedClient) {
    let token = world.join_token().await;
    let mut member = Member::open_or_join(&world.dir.path().join(dir), token.expose_str(), &world.env).unwrap();
    let client = FeedClient::new(&member).unwrap();
    client.enrol(&mut member, name).await.unwrap();
    (member, client)
}

fn start(world: &World) -> Position {
    Position { epoch: world.feed.epoch(), seq: 0 }
}

#[tokio::test]
async fn a_join_token_lets_one_edge_in_once_and_the_same_edge_may_ask_again() {
    let world = World::new().await;
    let token = world.join_token().await;
    let (one, two) = (world.dir.path().join("one"), world.dir.path().join("two"));
    let mut member = Member::open_or_join(&one, token.expose_str(), &world.env).unwrap();
    // The state before the answer came, as a crash would leave it.
    std::fs::create_dir(&two).unwrap();
    std::fs::copy(one.join("member.json"), two.join("member.json")).unwrap();
    let client = FeedClient::new(&member).unwrap();
    client.enrol(&mut member, "edge-1").await.unwrap();

    let mut again = Member::open_or_join(&two, None, &world.env).unwrap();
    client.enrol(&mut again, "edge-1").await.unwrap();
    assert_eq!(again.edge_id(), member.edge_id());

    let mut thief = Member::open_or_join(&world.dir.path().join("thief"), token.expose_str(), &world.env).unwrap();
    let refused = FeedClient::new(&thief).unwrap().enrol(&mut thief, "thief").await;
    assert!(matches!(refused, Err(ClientError::Refused { .. })), "{refused:?}");
    assert_eq!(edges::list(&world.store).await.unwrap().len(), 1);

    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::metadata(one.join("member.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn a_taken_name_is_refused_and_the_token_stays_good() {
    let world = World::new().await;
    enrolled(&world, "edge-1").await;
    let token = world.join_token().await;
    let mut member = Member::open_or_join(&world.dir.path().join("second"), token.expose_str(), &world.env).unwrap();
    let client = FeedClient::new(&member).unwrap();
    assert!(matches!(client.enrol(&mut member, "edge-1").await, Err(ClientError::Status { status: 409, .. })));
    assert!(matches!(client.enrol(&mut member, "no spaces").await, Err(ClientError::Status { status: 400, .. })));
    client.enrol(&mut member, "edge-2").await.unwrap();
    assert!(member.edge_id().is_some());
}

#[tokio::test]
async fn an_expired_token_and_a_wrong_credential_are_refused() {
    let world = World::new().await;
    let token = world.feed.mint_join_token(&world.url, "old", Duration::ZERO).await.unwrap();
    let mut member = Member::open_or_join(&world.dir.path().join("late"), token.expose_str(), &world.env).unwrap();
    let client = FeedClient::new(&member).unwrap();
    assert!(matches!(client.enrol(&mut member, "late").await, Err(ClientError::Refused { .. })));
    assert!(matches!(client.snapshot().await, Err(ClientError::Refused { .. })));
}

#[tokio::test]
async fn a_snapshot_then_deltas_each_host_with_its_certificate() {
    snapshot_then_deltas(World::new().await).await;
}

#[tokio::test]
async fn a_snapshot_then_deltas_each_host_with_its_certificate_on_postgres() {
    snapshot_then_deltas(World::on_postgres().await).await;
}

async fn snapshot_then_deltas(world: World) {
    let (_, client) = enrolled(&world, "edge-1").await;
    until("the tenant's number", || async {
        matches!(client.changes(start(&world), Duration::ZERO).await, Ok(Message::Deltas(d)) if d.upto == 1)
    })
    .await;
    let Message::Snapshot(snapshot) = client.snapshot().await.unwrap() else { panic!("not a snapshot") };
    assert_eq!((snapshot.position.seq, snapshot.entries.len()), (1, 1));

    // The host's row is announced, its certificate's is not: it travels all the same, and before the host.
    let (chain, key) = world.ca.leaf("support.acme.test");
    let certificate = world.store_certificate("support.acme.test", &chain, key).await;
    world.route("support.acme.test", HostAction::Serve, Some(&certificate), 1).await;
    let Message::Deltas(deltas) = client.changes(snapshot.position, Duration::from_secs(10)).await.unwrap() else {
        panic!("not deltas")
    };
    assert_eq!((deltas.after, deltas.upto), (1, 2));
    let [Entry::Certificate(sent), Entry::Host(host)] = deltas.entries.as_slice() else { panic!("{:?}", deltas.entries) };
    assert_eq!((&sent.id, host.certificate_id.as_ref()), (&certificate, Some(&certificate)));
    assert_eq!(host.slug, "acme");

    let quiet = client.changes(Position { seq: 2, ..snapshot.position }, Duration::from_millis(20)).await.unwrap();
    assert!(matches!(quiet, Message::Deltas(d) if d.entries.is_empty() && d.upto == 2));
    let answer = client.changes(Position { epoch: 1, seq: 0 }, Duration::from_secs(10)).await.unwrap();
    assert!(matches!(answer, Message::Reset { position } if position.seq == 2), "{answer:?}");
    let ahead = client.changes(Position { seq: 99, ..snapshot.position }, Duration::from_secs(10)).await;
    assert!(ahead.is_err_and(|why| why.to_string().contains("older copy")));
}

#[tokio::test]
async fn a_revoked_edge_hears_nothing_more_and_the_distribution_key_rotates() {
    let world = World::new().await;
    let (revoked, client) = enrolled(&world, "edge-1").await;
    let (_, other) = enrolled(&world, "edge-2").await;
    let before = other.keys().await.unwrap();
    assert_eq!(client.keys().await.unwrap().len(), 1);
    let id = revoked.edge_id().unwrap();
    assert!(world.feed.revoke(id).await.unwrap());
    assert!(!world.feed.revoke(id).await.unwrap());
    assert_eq!(world.store.execute(edges::set_status(id, EdgeStatus::Active)).await.unwrap(), 0);
    assert!(matches!(client.changes(start(&world), Duration::ZERO).await, Err(ClientError::Refused { .. })));
    assert!(matches!(client.keys().await, Err(ClientError::Refused { .. })));
    assert!(matches!(client.ack(None, vec![]).await, Err(ClientError::Refused { .. })));

    // The name is free again, the credential is not.
    enrolled_in(&world, "edge-1-anew", "edge-1").await;

    let after = other.keys().await.unwrap();
    assert_eq!((after.len(), after[1].key_id()), (2, before[0].key_id()));
    let certificate = world.serve("support.acme.test").await;
    let Message::Snapshot(snapshot) = other.snapshot().await.unwrap() else { panic!("not a snapshot") };
    let sealed = snapshot.entries.iter().find_map(|e| match e {
        Entry::Certificate(c) if c.id == certificate => c.material.as_ref().map(|m| m.sealed_key.clone()),
        _ => None,
    });
    let packet = nameplate::vault::distribution::Packet::try_from(sealed.unwrap()).unwrap();
    assert_eq!(packet.key_id(), after[0].key_id());
}

/// Sees nothing wrong, and counts what it was shown.
#[derive(Default)]
struct Calm(AtomicUsize);

#[async_trait]
impl Observer for Calm {
    fn changed(&self, _certificates: Option<&[CertificateId]>) {}
    async fn observe(&self, served: Vec<Served>) {
        self.0.fetch_add(served.len(), Ordering::Relaxed);
    }
    async fn exceptions(&self) -> Vec<Exception> {
        Vec::new()
    }
}

struct Following {
    replica: Arc<Replica>,
    seen: Arc<Calm>,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

fn follow(follower: Follower, name: &'static str) -> Following {
    let (replica, seen, stop) = (follower.replica(), Arc::<Calm>::default(), CancellationToken::new());
    let (observer, stopped) = (Arc::clone(&seen), stop.clone());
    let task = tokio::spawn(async move { follower.run(name, observer, stopped).await });
    Following { replica, seen, stop, task }
}

#[tokio::test]
async fn a_new_epoch_makes_readers_take_a_snapshot() {
    let mut world = World::new().await;
    world.serve("support.acme.test").await;
    let token = world.join_token().await;
    let dir = world.dir.path().join("edge-1");
    let following = follow(Follower::open(&dir, token.expose_str(), Env::real()).unwrap(), "edge-1");
    until("the host", || async { following.replica.host("support.acme.test").is_some() }).await;
    until("the look", || async { following.seen.0.load(Ordering::Relaxed) > 0 }).await;
    world.down().await;
    world.store.execute(sql("UPDATE feed SET epoch = epoch + 1")).await.unwrap();
    world.store.execute(sql("UPDATE outbox SET seq = NULL")).await.unwrap();
    world.store.execute(sql("UPDATE feed SET last_seq = 0")).await.unwrap();
    world.up().await;
    world.serve("shop.acme.test").await;
    until("the new epoch", || async {
        let there = following.replica.position().is_some_and(|p| p.epoch == world.feed.epoch());
        there && following.replica.host("shop.acme.test").is_some() && following.replica.host("support.acme.test").is_some()
    })
    .await;
    let shop = following.replica.certificate_for("shop.acme.test").unwrap();
    assert!(following.replica.open_key(&shop).is_ok());
    following.stop.cancel();
    following.task.await.unwrap();
}

#[tokio::test]
async fn an_older_copy_that_nobody_declared_takes_nothing_from_its_readers() {
    let mut world = World::new().await;
    world.serve("support.acme.test").await;
    let token = world.join_token().await;
    let dir = world.dir.path().join("edge-1");
    let following = follow(Follower::open(&dir, token.expose_str(), Env::real()).unwrap(), "edge-1");
    until("every change", || async { following.replica.position().is_some_and(|p| p.seq == 3) }).await;
    assert!(following.replica.host("support.acme.test").is_some());
    world.down().await;
    // A restore to an earlier point that kept the epoch: the reader is ahead of the feed.
    world.store.execute(sql("DELETE FROM outbox WHERE seq > 1")).await.unwrap();
    world.store.execute(sql("UPDATE feed SET last_seq = 1")).await.unwrap();
    world.store.execute(sql("DELETE FROM routes")).await.unwrap();
    world.up().await;
    world.store.execute(sql("UPDATE edges SET cursor_seq = 1, heartbeat_at = 1")).await.unwrap();
    let refused = || async { following.replica.status().trouble.is_some_and(|why| why.contains("older copy")) };
    until("the refusal", refused).await;
    // What the edge has is written down for the doctor; it is not heard of, so it does not count.
    let edge = || sql("SELECT cursor_seq, heartbeat_at FROM edges");
    until("its position", || async {
        let row = &world.store.query(edge()).await.unwrap()[0];
        row.int("cursor_seq").unwrap() == 3 && row.int("heartbeat_at").unwrap() == 1
    })
    .await;
    assert!(following.replica.host("support.acme.test").is_some(), "it serves on");
    world.down().await;
    nameplate::app::restore::begin(&world.store, &world.env).await.unwrap();
    world.up().await;
    until("the new epoch", || async { following.replica.position().is_some_and(|p| p.epoch == world.feed.epoch()) }).await;
    assert!(following.replica.host("support.acme.test").is_some(), "what only it knows is kept");
    until("a heartbeat", || async { world.store.query(edge()).await.unwrap()[0].int("heartbeat_at").unwrap() > 1 }).await;
    following.stop.cancel();
    following.task.await.unwrap();
}

#[tokio::test]
async fn what_another_key_signed_or_another_server_says_is_not_believed() {
    let world = World::new().await;
    world.serve("support.acme.test").await;
    let token = JoinToken::from_text(world.join_token().await.expose_str().unwrap()).unwrap();
    let other_signer = JoinToken { signing_key: [7; 32], ..token.clone() }.to_text();
    let dir = world.dir.path().join("suspicious");
    let following = follow(Follower::open(&dir, other_signer.expose_str(), Env::real()).unwrap(), "suspicious");
    until("the trouble", || async { following.replica.status().trouble.is_some_and(|t| t.contains("signed by feed key")) })
        .await;
    assert!(!following.replica.has_book());
    following.stop.cancel();
    following.task.await.unwrap();

    let other_server = JoinToken { pin: [7; 32], ..token }.to_text();
    let mut member = Member::open_or_join(&world.dir.path().join("lost"), other_server.expose_str(), &world.env).unwrap();
    let refused = FeedClient::new(&member).unwrap().enrol(&mut member, "lost").await;
    assert!(matches!(refused, Err(ClientError::Unreachable { .. })), "{refused:?}");
}

#[tokio::test]
async fn two_relays_number_what_many_write_without_a_gap() {
    numbers_have_no_gap(World::new().await).await;
}

#[tokio::test]
async fn two_relays_number_what_many_write_without_a_gap_on_postgres() {
    numbers_have_no_gap(World::on_postgres().await).await;
}

async fn numbers_have_no_gap(world: World) {
    let second = Feed::open(world.store.clone(), Arc::clone(&world.vault), world.env.clone(), Arc::clone(&world.written))
        .await
        .unwrap();
    let writers = (0..4).map(|w| {
        let (store, env) = (world.store.clone(), world.env.clone());
        async move {
            for n in 0..50 {
                let id = mint!(env, EventId);
                let mut tx = store.begin().await.unwrap();
                tx.execute(outbox::insert(id.as_str(), "host", &format!("h{w}-{n}.test"), 1, env.now())).await.unwrap();
                tx.execute(
                    sql("INSERT INTO events (id, kind, actor, cause, detail, at) VALUES ($1, 'k', 'a', 'c', '{}', 0)")
                        .bind(id.as_str()),
                )
                .await
                .unwrap();
                tx.commit().await.unwrap();
            }
        }
    });
    let relays = [world.feed.clone(), second].map(|feed| async move {
        for _ in 0..20 {
            feed.number().await.unwrap();
        }
    });
    tokio::join!(futures::future::join_all(writers), futures::future::join_all(relays));
    world.feed.number().await.unwrap();
    let dense = world
        .store
        .fetch_optional(sql("SELECT COUNT(*) AS n, COUNT(seq) AS numbered, MIN(seq) AS low, MAX(seq) AS high, \
                             (SELECT COUNT(position) FROM events) AS positions, (SELECT MAX(position) FROM events) AS last, \
                             (SELECT last_seq FROM feed) AS last_seq FROM outbox"))
        .await
        .unwrap()
        .unwrap();
    let read = |column: &str| dense.int(column).unwrap();
    assert_eq!([read("n"), read("numbered"), read("low"), read("high"), read("last_seq")], [201, 201, 1, 201, 201]);
    assert_eq!([read("positions"), read("last")], [200, 200]);
}

#[tokio::test]
async fn rollout_counts_who_counts_and_says_who_is_behind() {
    rollout_counts(World::new().await).await;
}

#[tokio::test]
async fn rollout_counts_who_counts_and_says_who_is_behind_on_postgres() {
    rollout_counts(World::on_postgres().await).await;
}

async fn rollout_counts(world: World) {
    let certificate = world.serve("support.acme.test").await;
    let subject = certificate.as_str();
    let numbered = async |kind, subject| world.rollout(kind, subject).await.numbered;
    // All of it: the cursors below are positions behind the last of them.
    until("every number", || async {
        numbered("certificate", subject).await && numbered("host", "support.acme.test").await
    })
    .await;
    assert!(!world.rollout("certificate", "crt_unheard_of").await.numbered);
    assert!(!world.rollout("certificate", subject).await.complete(1), "no edge counts");

    let (one, one_line) = enrolled(&world, "edge-1").await;
    let (two, two_line) = enrolled(&world, "edge-2").await;
    let id = |member: &Member| member.edge_id().unwrap().clone();
    let names = |behind: Vec<(EdgeId, String)>| behind.into_iter().map(|b| b.1).collect::<Vec<_>>();
    let all = Position { seq: 3, ..start(&world) };
    one_line.ack(Some(all), vec![]).await.unwrap();
    two_line.ack(Some(Position { seq: 1, ..all }), vec![]).await.unwrap();
    let seen = world.rollout("certificate", subject).await;
    assert_eq!((seen.counted, names(seen.behind)), (2, vec!["edge-2".to_owned()]));

    // The laggard is left behind, is not counted, and is found again once it has caught up.
    world
        .store
        .execute(sql("UPDATE edges SET lost_at = $2 WHERE id = $1").bind(id(&two).as_str()).bind(world.env.now()))
        .await
        .unwrap();
    assert!(world.rollout("certificate", subject).await.complete(1));
    world.store.execute(sql("UPDATE outbox SET at = at - 10000000")).await.unwrap();
    assert!(two_line.ack(Some(Position { seq: 1, ..all }), vec![]).await.unwrap());
    until("every number", || async { world.rollout("host", "support.acme.test").await.numbered }).await;
    assert!(!two_line.ack(Some(all), vec![]).await.unwrap());
    assert_eq!(world.rollout("certificate", subject).await.counted, 2);

    // What an edge holds and does not serve is told, and is over when it no longer tells.
    let (chain, key) = world.ca.leaf("support.acme.test");
    let wrong = probed::seen_instead(&world.env, "support.acme.test", &certificate, Shown { chain, key }).await;
    let observed = wrong.observed.clone();
    assert!(observed.starts_with("serial ") && !observed.contains(':'), "{observed}");
    two_line.ack(Some(all), vec![wrong.clone()]).await.unwrap();
    assert_eq!(names(world.rollout("certificate", subject).await.exceptions), [observed]);
    let stored = async || {
        let rows = world.store.query(sql("SELECT serial FROM rollout_exceptions")).await.unwrap();
        rows[0].opt_text("serial").unwrap()
    };
    assert_eq!((stored().await, wrong.serial.is_some()), (wrong.serial.clone(), true));
    // An edge of an older release says it in words alone, in a spelling of its own.
    let older = Exception { observed: "serial 04:A7:c3".to_owned(), serial: None, ..wrong };
    two_line.ack(Some(all), vec![older]).await.unwrap();
    assert_eq!(stored().await.as_deref(), Some("04a7c3"));
    two_line.ack(Some(all), vec![]).await.unwrap();
    assert!(world.rollout("certificate", subject).await.complete(2));

    // Another epoch's cursor has nothing of this one; the drained and the silent do not count.
    two_line.ack(Some(Position { epoch: 1, seq: 900 }), vec![]).await.unwrap();
    assert_eq!(names(world.rollout("certificate", subject).await.behind), ["edge-2"]);
    world.store.execute(edges::set_status(&id(&two), EdgeStatus::Drained)).await.unwrap();
    assert_eq!(world.rollout("certificate", subject).await.counted, 1);
    world
        .store
        .execute(sql("UPDATE edges SET heartbeat_at = heartbeat_at - 31000000 WHERE id = $1").bind(id(&one).as_str()))
        .await
        .unwrap();
    assert_eq!(world.rollout("certificate", subject).await.counted, 0);
}
