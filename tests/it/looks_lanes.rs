//! Whoever pressed "check now" is kept waiting by nobody's import and by no daily recheck.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use nameplate::app::{account, advance, check};
use nameplate::dns::{Caps, Gate, Look};
use nameplate::env::Env;
use nameplate::model::checks;
use nameplate::model::id::TenantId;
use nameplate::model::look::{Ask, Depth, Lane, Seen, Turn};
use nameplate::model::moment::Moment;
use nameplate::model::traffic::Cap;

use crate::support::dns_ask::{VALUE, caa, ownership, routing, world};
use crate::support::dns_world;
use crate::support::rig::Rig;

fn everything(hostname: &str, turn: Turn) -> Ask {
    let mut ask = ownership(hostname);
    ask.routing = routing(hostname).routing;
    ask.caa = caa(hostname).caa;
    ask.turn = turn;
    ask
}

fn tenant(n: u8) -> TenantId {
    TenantId::mint(Moment::from_secs(1), [n; 10])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backlog_of_imports_and_rechecks_delays_nobody_who_asks() {
    let world = world(&[]);
    let at = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    for zone in (0..40).map(|n| format!("z{n}.test")).chain(["mine.test".to_owned()]) {
        world.add_zone(&zone, "ns1.dns.example", at);
        world.add(&format!("shop.{zone}. 300 IN CNAME edge.platform.example.")).unwrap();
        world.add(&format!("_nameplate-challenge.shop.{zone}. 300 IN TXT \"{VALUE}\"")).unwrap();
    }
    let dns = dns_world::serve(&world, &[("ns1.dns.example".to_owned(), at)]).await;
    let env = Env::real();
    let caps = Caps { looks: Cap::new(30, 8), server: Cap::new(2_000, 64), ..Caps::default() };
    let observers = dns.observers.clone().behind(Gate::new(caps, &env, Arc::default()));
    let made = Arc::new(AtomicUsize::new(0));
    let backlog: Vec<_> = (0..600_usize)
        .map(|n| {
            let (observers, made) = (observers.clone(), made.clone());
            tokio::spawn(async move {
                let lane = if n % 2 == 0 { Lane::Bulk } else { Lane::Routine };
                // Half of them the very tenant's who will ask.
                let turn = Turn { lane, tenant: Some(tenant(u8::try_from(n % 2).unwrap())), patience: None };
                let mut ask = everything(&format!("shop.z{}.test", n % 40), turn);
                ask.depth = if lane == Lane::Routine { Depth::Routine } else { Depth::Full };
                observers.look(&ask).await;
                made.fetch_add(1, Ordering::Relaxed);
            })
        })
        .collect();
    let mut waits = Vec::new();
    for _ in 0..6 {
        let began = env.now();
        let ask = everything("shop.mine.test", Turn::of(&tenant(0), Lane::CheckNow));
        let seen = observers.look(&ask).await;
        waits.push(env.now().since(began));
        assert_eq!(seen.put_off, None);
        let codes: Vec<&str> = checks::judge(&ask, &seen).iter().map(|f| f.reason.code()).collect();
        assert_eq!(codes, ["txt_ok", "cname_ok", "caa_absent"]);
    }
    assert!(made.load(Ordering::Relaxed) < 500, "there was no backlog any more");
    waits.sort();
    assert!(waits[3] < Duration::from_millis(800), "{waits:?}");
    for task in backlog {
        task.abort();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_look_that_waits_for_its_turn_has_all_its_time_afterwards() {
    let world = world(&["shop.example.com. 300 IN CNAME edge.platform.example."]);
    let at = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    let dns = dns_world::serve_with(
        &world,
        &[("ns1.dns.example".to_owned(), at)],
        &[],
        nameplate::dns::Limits { time: Duration::from_millis(700), ..nameplate::dns::Limits::default() },
    )
    .await;
    let env = Env::real();
    // One packet a second to the zone's server: a look needs more of them than its time allows.
    let caps = Caps { server: Cap::new(1, 8), ..Caps::default() };
    let observers = dns.observers.clone().behind(Gate::new(caps, &env, Arc::default()));
    let began = env.now();
    let ask = everything("shop.example.com", Turn::default());
    let seen = observers.look(&ask).await;
    assert_eq!((seen.put_off, seen.cut_short.clone()), (None, None));
    assert!(env.now().since(began) > Duration::from_millis(700), "nothing waited");
    assert_eq!(checks::judge(&ask, &seen)[0].reason.code(), "txt_missing");
    // Whoever may be put off is told so instead, before a packet is sent.
    let asks: Vec<Ask> = (0..6).map(|_| everything("shop.example.com", Turn::of(&tenant(1), Lane::Bulk))).collect();
    let seen = futures::future::join_all(asks.iter().map(|ask| observers.look(ask))).await;
    let put_off = seen.iter().filter(|s| s.put_off > Some(Duration::from_secs(1)) && s.observations.is_empty()).count();
    assert!(put_off > 0, "{:?}", seen.iter().map(|s| s.put_off).collect::<Vec<_>>());
}

/// Puts every look off for as long as it is told, and then lets them through.
struct Full {
    inner: Arc<dyn Look>,
    wait: std::sync::Mutex<Option<Duration>>,
}

#[async_trait]
impl Look for Full {
    async fn look(&self, ask: &Ask) -> Seen {
        let wait = *self.wait.lock().unwrap();
        match wait {
            wait @ Some(_) => Seen { put_off: wait, ..Seen::default() },
            None => self.inner.look(ask).await,
        }
    }
}

#[tokio::test]
async fn a_look_that_is_put_off_changes_nothing_but_the_time_that_people_are_told() {
    let mut rig = Rig::new(41).await;
    let full = Arc::new(Full { inner: rig.app.look.clone(), wait: std::sync::Mutex::new(Some(Duration::from_secs(300))) });
    rig.app.look = full.clone();
    let tenant = rig.tenant("acme").await;
    let id = rig.claim(&tenant, "shop.acme.test").await;
    rig.publish(&id, "shop.acme.test").await;
    account::ensure_all(&rig.app).await.unwrap();
    advance::advance(&rig.app, &id).await.unwrap();
    let next = rig.env.now() + Duration::from_secs(300);
    let row = |rig: &Rig| {
        let stmt = nameplate::store::sql("SELECT * FROM domains WHERE id = $1").bind(id.as_str());
        let store = rig.app.store.clone();
        async move { store.query(stmt).await.unwrap().remove(0) }
    };
    let seen = row(&rig).await;
    assert_eq!((seen.moment("due_at").unwrap(), seen.opt_moment("looked_at").unwrap()), (next, None));
    assert_eq!(rig.events(&id).await, ["claimed"]);
    // A look that is asked for and put off is still owed.
    check::check_now(&rig.app, &id, "tenant").await.unwrap();
    assert_eq!(rig.queue.pop(rig.env.now()).as_ref(), Some(&id));
    advance::advance(&rig.app, &id).await.unwrap();
    assert_eq!(row(&rig).await.opt_moment("looked_at").unwrap(), None);
    *full.wait.lock().unwrap() = None;
    rig.hand.advance(Duration::from_secs(300));
    advance::advance(&rig.app, &id).await.unwrap();
    assert_eq!(rig.domain_text(&id, "claim").await.unwrap(), "queued");
    assert!(rig.events(&id).await.contains(&"check_asked".to_owned()));
}

/// However a person or a script asks, one name is looked at once in five seconds, and each tenant's claim by itself.
#[tokio::test]
async fn one_name_is_looked_at_once_in_five_seconds_whichever_way_it_is_asked() {
    let rig = Rig::new(42).await;
    let (a, b) = (rig.tenant("acme").await, rig.tenant("beta").await);
    let (mine, theirs) = (rig.claim(&a, "shop.acme.test").await, rig.claim(&b, "shop.acme.test").await);
    let mut asked = [0, 0];
    for second in 0..60 {
        for (n, id) in [&mine, &theirs].into_iter().enumerate() {
            for actor in ["tenant", "api", "operator"] {
                match check::check_now(&rig.app, id, actor).await {
                    Ok(()) => asked[n] += 1,
                    Err(check::CheckError::TooSoon(left)) => assert!(left <= check::AT_MOST_EVERY),
                    Err(e) => panic!("{second}: {e}"),
                }
            }
        }
        rig.hand.advance(Duration::from_secs(1));
    }
    assert_eq!(asked, [12, 12], "one claim says nothing of another's, not even that it exists");
    // Claiming again what is claimed is no way around it.
    let before = rig.domain_text(&mine, "attempt_id").await;
    assert_eq!(rig.claim(&a, "shop.acme.test").await, mine);
    assert_eq!(rig.domain_text(&mine, "attempt_id").await, before);
    assert!(check::check_now(&rig.app, &mine, "tenant").await.is_ok());
    assert!(check::check_now(&rig.app, &mine, "tenant").await.is_err());
}
