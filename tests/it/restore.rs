//! Backup and restore, tried: the copy is of yesterday, the CA and the edges are of today.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use nameplate::app::restore::{self, RestoreError};
use nameplate::env::Env;
use nameplate::feed::Feed;
use nameplate::model::feed::HostAction;
use nameplate::model::ledger::Limit;
use nameplate::model::limits::LimitName;
use nameplate::store::issuers::{self, IssuerSeed};
use nameplate::store::{OpenSettings, Store, sql};

use crate::support::feed_world::{RunningEdge, World, until};
use crate::support::rig::Rig;
use crate::support::visitor::{Origin, connect};

const OLD: &str = "old.acme.test";
const NEW: &str = "new.acme.test";
const AFTER: &str = "after.acme.test";

async fn open(url: &str) -> Store {
    Store::open(&OpenSettings { url: url.to_owned(), connections: 4 }).await.unwrap()
}

async fn is_served(edge: &RunningEdge, name: &str, world: &World) -> bool {
    connect(edge.tls, name, &world.ca.root).await.is_ok()
}

async fn epoch(world: &World) -> i64 {
    world.store.query(sql("SELECT epoch FROM feed")).await.unwrap()[0].int("epoch").unwrap()
}

/// One name before the copy, one after it; the copy comes back; nobody loses anything until the operator says so.
async fn story(mut world: World, url: &str, copy: impl AsyncFn(&World), put_back: impl AsyncFn(&World) -> Store) {
    let origin = Origin::start().await;
    let certificate = world.serve(OLD).await;
    let edge = world.edge("edge-1", origin.at).await;
    world.rolled_out("certificate", certificate.as_str()).await;
    copy(&world).await;
    let since = world.serve(NEW).await;
    world.rolled_out("certificate", since.as_str()).await;
    world.rolled_out("host", NEW).await;
    let before = epoch(&world).await;
    let position = sql("SELECT last_position AS n FROM feed");
    let position = world.store.query(position).await.unwrap()[0].int("n").unwrap();

    world.down().await;
    world.store.close().await;
    world.store = put_back(&world).await;
    assert!(world.store.query(sql("SELECT 1 AS n FROM routes WHERE hostname = 'new.acme.test'")).await.unwrap().is_empty());
    assert!(is_served(&edge, OLD, &world).await && is_served(&edge, NEW, &world).await, "with the control plane down");
    let done = restore::begin(&world.store, &world.env).await.unwrap();
    assert!(done.epoch > before);
    world.up().await;
    assert_eq!(world.feed.epoch(), done.epoch);
    until("the edge follows the new epoch", || async { edge.view.status().position.is_some_and(|p| p.epoch == done.epoch) })
        .await;
    assert!(is_served(&edge, OLD, &world).await);
    assert!(is_served(&edge, NEW, &world).await, "what only the edge knows is served on");
    // It told what it was told after the copy was made, and whoever ends the recovery is shown that.
    let remembered = sql("SELECT hostname, action, serial FROM recollections ORDER BY hostname");
    let rows = world.store.query(remembered).await.unwrap();
    assert_eq!(rows.len(), 1, "what is stored needs no reminder");
    assert_eq!((rows[0].text("hostname").unwrap().as_str(), rows[0].text("action").unwrap().as_str()), (NEW, "serve"));
    assert!(rows[0].opt_text("serial").unwrap().is_some());
    let ahead = async || restore::status(&world.store).await.unwrap().unwrap().ahead;
    until("the edge confirms", || async { ahead().await.edges == 1 }).await;
    assert_eq!((ahead().await.unsettled, ahead().await.edges_behind), (1, 0));
    let later = world.serve(AFTER).await;
    world.rolled_out("certificate", later.as_str()).await;
    until("work goes on", || async { is_served(&edge, AFTER, &world).await }).await;

    // Also an edge that starts again meanwhile, from its own copy, and one that comes anew, which knows what is stored.
    edge.stop().await;
    let edge = RunningEdge::start(&world.dir.path().join("edge-1"), "edge-1", origin.at, None).await;
    until("it is back", || async { is_served(&edge, OLD, &world).await }).await;
    assert!(is_served(&edge, NEW, &world).await, "the key of the old epoch is in its copy");
    let fresh = world.edge("edge-2", origin.at).await;
    until("the new edge", || async { is_served(&fresh, OLD, &world).await }).await;
    assert!(!is_served(&fresh, NEW, &world).await);

    // A removal that is told now counts, whatever the edge had.
    let version = world.env.now().micros();
    world.route(OLD, HostAction::Gone, None, version).await;
    until("the removal", || async { !is_served(&edge, OLD, &world).await }).await;

    // While everything runs; not before what edges remember is taken in.
    let early = restore::end(&world.store, &world.env, Some(0), "x").await;
    assert!(matches!(early, Err(RestoreError::Unsettled(1))), "{early:?}");
    for row in nameplate::store::restore::unsettled(&world.store, world.env.now(), world.env.now(), 10).await.unwrap() {
        let settled = nameplate::store::restore::settled(&row, "unknown", world.env.now());
        assert_eq!(world.store.execute(settled).await.unwrap(), 1);
    }
    let changed = restore::end(&world.store, &world.env, Some(0), "x").await;
    assert!(matches!(changed, Err(RestoreError::Changed(1))), "{changed:?}");
    let ended = restore::end(&world.store, &world.env, Some(1), "x").await.unwrap();
    assert!(ended > done.epoch);
    assert!(matches!(restore::end(&world.store, &world.env, None, "x").await, Err(RestoreError::NotRecovering)));
    assert_eq!(restore::status(&world.store).await.unwrap(), None);
    until("the recovery is over", || async { edge.view.status().position.is_some_and(|p| p.epoch == ended) }).await;
    assert!(!is_served(&edge, NEW, &world).await, "now edges have exactly what is stored");
    assert!(is_served(&edge, AFTER, &world).await);
    // Whoever reads events on from where they stopped misses none of the new ones.
    let told = sql("SELECT min(position) AS n FROM events WHERE kind IN ('restored', 'recovery_ended')");
    until("the events have positions", || async {
        world.store.query(told.clone()).await.unwrap()[0]
            .opt_int("n")
            .unwrap()
            .is_some_and(|n| n > position && n >= done.epoch)
    })
    .await;
    fresh.stop().await;
    edge.stop().await;
    let _ = url;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sqlite_copy_comes_back_and_edges_keep_what_it_does_not_know() {
    let world = World::new().await;
    let file = world.dir.path().join("np.db");
    let copy = world.dir.path().join("copy.db");
    let url = format!("sqlite:{}", file.display());
    story(
        world,
        &url,
        async |world: &World| assert!(world.store.copy_to(&copy).await.unwrap()),
        async |_: &World| {
            for end in ["", "-wal", "-shm"] {
                let _ = std::fs::remove_file(format!("{}{end}", file.display()));
            }
            std::fs::copy(&copy, &file).unwrap();
            open(&url).await
        },
    )
    .await;
}

pub fn postgres(tool: &str, arguments: &[&str]) {
    let output = Command::new(Path::new("/usr/lib/postgresql/15/bin").join(tool)).args(arguments).output().unwrap();
    assert!(output.status.success(), "{tool}: {}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_postgresql_dump_comes_back_and_edges_keep_what_it_does_not_know() {
    let base = crate::support::services::postgres_url();
    let (server, _) = base.rsplit_once('/').unwrap();
    let name = format!("restored_{}", Env::real().draw_hex(8));
    let again = format!("{server}/{name}");
    let world = World::on_postgres().await;
    let rows = world.store.query(sql("SELECT current_database()::text AS db")).await.unwrap();
    let first = format!("{server}/{}", rows[0].text("db").unwrap());
    let dump = world.dir.path().join("dump");
    let dump = dump.to_str().unwrap().to_owned();
    story(
        world,
        &again,
        async |world: &World| {
            assert!(!world.store.copy_to(Path::new("/nowhere")).await.unwrap(), "PostgreSQL copies itself");
            postgres("pg_dump", &["--format=custom", &format!("--file={dump}"), &first]);
        },
        async |_: &World| {
            postgres("createdb", &[&format!("--maintenance-db={base}"), &name]);
            postgres("pg_restore", &["--exit-on-error", &format!("--dbname={again}"), &dump]);
            open(&again).await
        },
    )
    .await;
    postgres("dropdb", &["--force", &format!("--maintenance-db={base}"), &name]);
}

/// The CA's account took ten orders; the copy knows of three and of one that was granted.
#[tokio::test]
async fn no_budget_is_exceeded_by_what_the_copy_does_not_know() {
    let dir = tempfile::tempdir().unwrap();
    let (file, copy) = (dir.path().join("np.db"), dir.path().join("copy.db"));
    let limit = Limit { burst: 10, per_secs: 1_000 };
    let mut rig = Rig::with_limit(41, &format!("sqlite:{}", file.display()), limit).await;
    let acme = rig.tenant("acme").await;
    let order = async |rig: &Rig, n: usize| {
        let name = format!("n{n}.acme.test");
        let id = rig.claim(&acme, &name).await;
        rig.publish(&id, &name).await;
        id
    };
    for n in 0..3 {
        let id = order(&rig, n).await;
        rig.until_active(&id, Duration::from_secs(600)).await;
    }
    rig.app.store.copy_to(&copy).await.unwrap();
    for n in 3..10 {
        let id = order(&rig, n).await;
        rig.until_active(&id, Duration::from_secs(600)).await;
    }
    let placed = rig.ca.state().counters().orders_created;
    assert!(placed >= 10);
    rig.app.store.close().await;
    rig.app.store = open(&format!("sqlite:{}", copy.display())).await;
    while rig.queue.pop(rig.env.now()).is_some() {}
    // As if a grant had been open when the copy was made.
    let grants = sql("UPDATE grants SET state = 'open' WHERE id = (SELECT max(id) FROM grants)");
    assert_eq!(rig.app.store.execute(grants).await.unwrap(), 1);
    let restored = rig.env.now();
    let done = restore::begin(&rig.app.store, &rig.env).await.unwrap();
    assert_eq!(done.grants, 1);
    let open = sql("SELECT (SELECT count(*) FROM grants WHERE state = 'open') + (SELECT count(*) FROM spends) AS n");
    assert_eq!(rig.count(open).await, 0);
    rig.distribute_a_key().await;

    let mut ids = Vec::new();
    for n in 20..34 {
        ids.push(order(&rig, n).await);
    }
    let mut times = Vec::new();
    while times.len() < ids.len() {
        rig.turn().await;
        let now = usize::try_from(rig.ca.state().counters().orders_created - placed).unwrap();
        times.resize(now.max(times.len()), rig.env.now());
        assert!(rig.env.now().since(restored) < Duration::from_secs(10_000), "{} of {}", times.len(), ids.len());
    }
    // One comes back every 100 s, counted from the restore: whatever was spent before, no window of 1,000 s sees more than ten.
    for (n, at) in times.iter().enumerate() {
        let earliest = Duration::from_secs(100) * u32::try_from(n + 1).unwrap();
        assert!(at.since(restored) >= earliest - Duration::from_secs(1), "order {n} after {:?}", at.since(restored));
    }
    rig.check_invariants().await;
}

#[tokio::test]
async fn only_a_database_that_ran_can_be_recovered_and_open_invitations_end() {
    let world = World::new().await;
    let token = world.join_token().await;
    let behind = nameplate::env::manual::Hand::new(nameplate::model::moment::Moment::from_secs(1_000), 1).env();
    assert!(matches!(restore::begin(&world.store, &behind).await, Err(RestoreError::NothingBefore)));
    assert!(matches!(restore::end(&world.store, &world.env, None, "x").await, Err(RestoreError::NotRecovering)));
    for text in [
        "INSERT INTO links (id, kind, tenant_id, token_id, digest, created_by, created_at, expires_at, used_at) SELECT k || u, k, \
           t.id, n.id, CAST(k || u AS BLOB), 'x', 1, 9000000000000000, CASE u WHEN 'used' THEN 5 END \
         FROM tenants t, (SELECT id FROM tokens LIMIT 1) n, (SELECT 'portal' AS k UNION SELECT 'hand_off') kinds, \
           (SELECT 'open' AS u UNION SELECT 'used') uses",
        "INSERT INTO sessions (id, scope, tenant_id, token_id, digest, created_at, seen_at, expires_at) SELECT 'ses', 'tenant', \
           t.id, n.id, x'01', 1, 1, 9000000000000000 FROM tenants t, (SELECT id FROM tokens LIMIT 1) n",
    ] {
        assert!(world.store.execute(sql(text)).await.unwrap() >= 1);
    }
    let done = restore::begin(&world.store, &world.env).await.unwrap();
    assert_eq!(done.invitations, 3, "a join token, a portal link, a hand-off link");
    let left = sql("SELECT (SELECT count(*) FROM links WHERE revoked_at IS NULL AND used_at IS NULL) + \
                    (SELECT count(*) FROM sessions WHERE ended_at IS NULL) AS n");
    assert_eq!(world.store.query(left).await.unwrap()[0].int("n").unwrap(), 0);
    // An issuer that the copy does not know may have been spent at as well.
    let limit = Limit { burst: 10, per_secs: 1_000 };
    let (name, directory) = ("later".to_owned(), "https://later.test/dir".to_owned());
    let limits = [(LimitName::OrdersPerAccount, limit)].into();
    let seed = IssuerSeed { name, directory, preference: 1, limits, ..IssuerSeed::default() };
    let now = world.env.now();
    let mut tx = world.store.begin().await.unwrap();
    issuers::seed(&mut tx, &[seed], now, || nameplate::model::id::IssuerId::mint(now, [7; 10])).await.unwrap();
    tx.commit().await.unwrap();
    let tat = world.store.query(sql("SELECT max(tat) AS n FROM ledger")).await.unwrap()[0].int("n").unwrap();
    assert_eq!(tat, (now + Duration::from_secs(1_000)).micros(), "its limit counts as spent whole");
    let read = nameplate::feed::join::JoinToken::from_text(token.expose_str().unwrap()).unwrap();
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, read.secret.expose());
    let spent =
        world.store.execute(nameplate::store::edges::spend_join_token(digest.as_ref(), world.env.now())).await.unwrap();
    assert_eq!(spent, 0, "it may have been used since the copy");
    let feed = Feed::open(world.store.clone(), world.vault.clone(), world.env.clone(), Default::default()).await.unwrap();
    let keys = sql("SELECT id FROM distribution_keys WHERE epoch = $1").bind(feed.epoch());
    assert_eq!(world.store.query(keys).await.unwrap().len(), 1, "the new epoch has a key of its own");
}

#[test]
fn the_commands_copy_and_declare_and_refuse_what_would_mislead() {
    let dir = tempfile::tempdir().unwrap();
    let run = |line: &str, key: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nameplate"));
        command.args(line.split_whitespace()).env_clear().current_dir(dir.path());
        command.env("NAMEPLATE__VAULT__MASTER_KEY", key.repeat(32)).env("NAMEPLATE__FEED__URL", "https://feed.example");
        let output = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    };
    let (code, said) = run("backup copy.db", "07");
    assert!(code == Some(1) && said.contains("there is no file") && !dir.path().join("nameplate.db").exists(), "{said}");
    for beside in ["restored --yes", "token create --operator", "token list", "edge list", "tenant list"] {
        let (code, said) = run(beside, "07");
        let refused = code == Some(1) && said.contains("there is no file") && said.contains("nameplate migrate");
        assert!(refused && !dir.path().join("nameplate.db").exists(), "{beside}: {said}");
    }
    assert_eq!(run("migrate", "07").0, Some(0));
    assert!(run("restored --yes", "07").1.contains("no epoch before now"));
    let (code, said) = run("restored", "07");
    assert!(code == Some(1) && said.contains("--yes"), "{said}");
    assert_eq!(run("token create --edge", "07").0, Some(0));
    let of = |name: &str| {
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(dir.path().join(name)).unwrap().permissions()) & 0o777
    };
    assert_eq!(of("nameplate.db"), 0o600, "what is in it is nobody else's");
    let (code, said) = run("token create --operator --expires 99999999999d", "07");
    assert!(code == Some(1) && said.contains("a hundred years"), "{said}");
    let (code, said) = run("backup copy.db", "07");
    assert!(code == Some(0) && said.contains("Copied the database") && said.contains("master key"), "{said}");
    assert_eq!(of("copy.db"), 0o600);
    let (code, said) = run("backup copy.db", "07");
    assert!(code == Some(1) && said.contains("is there already") && said.contains("another name"), "{said}");
    let (code, said) = run("backup absent/copy.db", "07");
    assert!(code == Some(1) && said.contains("cannot be made"), "{said}");

    std::fs::remove_file(dir.path().join("nameplate.db")).unwrap();
    std::fs::rename(dir.path().join("copy.db"), dir.path().join("nameplate.db")).unwrap();
    let (code, said) = run("restored --yes", "08");
    assert!(code == Some(1) && said.contains("opens nothing of this database's vault"), "{said}");
    let (code, said) = run("restored --yes", "07");
    assert!(code == Some(0) && said.contains("restored --end"), "{said}");
    assert_eq!(run("restored --end", "07").0, Some(0));
    let (code, said) = run("restored --end", "07");
    assert!(code == Some(1) && said.contains("no recovery is under way"), "{said}");
}
