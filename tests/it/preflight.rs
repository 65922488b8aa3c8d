//! Before an order: requests through the public name, every kind of way to us, and names that must cost the CA nothing.

use std::io::{Error, ErrorKind};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use nameplate::app::{self, Settings};
use nameplate::model::domain::Domain;
use nameplate::model::evidence::{Actor, Check, Evidence, Verdict};
use nameplate::model::hostname::Hostname;
use nameplate::model::id::DomainId;
use nameplate::model::reason::Reason;
use nameplate::reach::{self, Place, Reach, ReachError, Reply, Sent, Served};
use nameplate::store::{situation, sql};
use tokio::task::JoinSet;

use crate::support::rig::Rig;
use crate::support::rig::edge_side::Says;
use crate::support::stores::until;

pub const NAME: &str = "shop.acme.test";
pub const OURS: &str = "192.0.2.80";
const OURS_V6: &str = "2001:db8:80::80";
const PROXY: &str = "198.51.100.80";
pub const HOUR: Duration = Duration::from_secs(3600);
pub const DAY: Duration = Duration::from_secs(24 * 3600);

/// A world with an IPv6 address of ours and a known proxy.
pub async fn world(seed: u64) -> Rig {
    let mut rig = Rig::new(seed).await;
    let mut settings = Settings::clone(&rig.app.settings);
    settings.platform.addresses.push(OURS_V6.parse().unwrap());
    settings.platform.cdn_prefixes = vec!["198.51.100.80/29".to_owned()];
    rig.app.settings = Arc::new(settings);
    rig
}

pub async fn claimed(rig: &Rig, name: &str) -> DomainId {
    let tenant = rig.tenant("acme").await;
    rig.claim(&tenant, name).await
}

pub async fn prove(rig: &Rig, id: &DomainId, name: &str) {
    let value = rig.value(id).await;
    rig.zones.add(&format!("_nameplate-challenge.{name}. 60 IN TXT \"{value}\"")).unwrap();
}

pub async fn domain(rig: &Rig, id: &DomainId) -> Domain {
    let rows = rig.app.store.query(sql("SELECT * FROM domains WHERE id = $1").bind(id.as_str())).await.unwrap();
    situation::domain(&rows[0]).unwrap()
}

pub async fn evidence(rig: &Rig, id: &DomainId, check: Check) -> Option<Evidence> {
    domain(rig, id).await.evidence_of(check).cloned()
}

async fn reason(rig: &Rig, id: &DomainId, check: Check) -> Option<Reason> {
    evidence(rig, id, check).await.map(|e| e.finding.reason)
}

/// Nothing was ever asked of the CA for any name, and nothing is kept back for one.
async fn nothing_was_spent(rig: &Rig) {
    assert_eq!(rig.ca.state().counters().orders_created, 0, "an order was placed");
    assert!(rig.ca.ordered_at().is_empty());
    for slot in ["SELECT count(*) AS n FROM spends", "SELECT count(*) AS n FROM grants WHERE state <> 'returned'"] {
        assert_eq!(rig.count(sql(slot)).await, 0, "{slot}");
    }
    rig.check_invariants().await;
}

fn page(status: u16, server: &str, body: &str) -> Reply {
    Reply { status, server: Some(server.to_owned()), sent: None, body: body.as_bytes().to_vec(), shown: None }
}

fn to(place: &Place, tls: bool, host: &str) -> Reply {
    let to = Place { tls, host: Hostname::trusted(host), path: place.path.clone() };
    Reply { sent: Some(Sent::To(to)), ..page(301, "proxy", "") }
}

fn always(reply: impl Fn(&Place) -> Result<Reply, ReachError> + Send + Sync + 'static) -> Says {
    Arc::new(reply)
}

fn refused() -> ReachError {
    ReachError::Connect(Error::from(ErrorKind::ConnectionRefused))
}

/// Every way to us that DNS can show goes from claim to live, with one order each.
#[tokio::test]
async fn every_way_to_us_ends_live() {
    let ways: [(&str, &str, &[&str], &str); 6] = [
        ("plain", NAME, &["shop.acme.test. 60 IN CNAME acme.app.example."], "cname_ok"),
        (
            "chained",
            NAME,
            &["shop.acme.test. 60 IN CNAME www.acme.test.", "www.acme.test. 60 IN CNAME acme.app.example."],
            "cname_ok_chain",
        ),
        (
            "flattened",
            NAME,
            &["shop.acme.test. 60 IN A 192.0.2.80", "shop.acme.test. 60 IN AAAA 2001:db8:80::80"],
            "address_ok",
        ),
        (
            "apex, both families",
            "acme.test",
            &["acme.test. 60 IN A 192.0.2.80", "acme.test. 60 IN AAAA 2001:db8:80::80"],
            "address_ok",
        ),
        ("apex, IPv4 alone", "acme.test", &["acme.test. 60 IN A 192.0.2.80"], "address_ok"),
        (
            "proxied",
            NAME,
            &["shop.acme.test. 60 IN A 198.51.100.80", "shop.acme.test. 60 IN A 198.51.100.81"],
            "proxied_reachable",
        ),
    ];
    for (seed, (what, name, records, code)) in (40..).zip(ways) {
        let rig = world(seed).await;
        let id = claimed(&rig, name).await;
        for record in records {
            rig.zones.add(record).unwrap();
        }
        prove(&rig, &id, name).await;
        rig.until_active(&id, HOUR).await;
        let story = rig.story(&id).await;
        assert_eq!(reason(&rig, &id, Check::Routing).await.map(Reason::code), Some(code), "{what}: {story}");
        assert_eq!(reason(&rig, &id, Check::Preflight).await, Some(Reason::PreflightOk), "{what}");
        assert_eq!(rig.ca.state().counters().orders_by_name.get(name), Some(&1), "{what}");
        // Where only addresses show, the ownership record is the only tie and must stay.
        let record = evidence(&rig, &id, Check::Ownership).await.unwrap().finding.record_to_publish[0].clone();
        let alone = matches!(code, "address_ok" | "proxied_reachable");
        assert_eq!(record.keep, alone, "{what}");
        // A day of routine looks finds nothing new and writes nothing.
        let before = rig.row(&id).await;
        app::routine::batch(&rig.app).await.unwrap();
        for _ in 0..3 {
            rig.hand.advance(DAY);
            rig.edge_follows().await;
            while app::routine::batch(&rig.app).await.unwrap().more {}
        }
        rig.everything_once(&rig.new_worker()).await;
        assert_eq!(rig.row(&id).await, before, "{what}: it looks different every day");
    }
}

/// A wildcard covers a name only until the ownership record stands beneath it (RFC 4592 §2.2.2): the page says so, and what to
/// add.
#[tokio::test]
async fn a_wildcard_gives_way_to_a_record_of_its_own() {
    let rig = world(50).await;
    let id = claimed(&rig, NAME).await;
    rig.zones.add("*.acme.test. 60 IN CNAME acme.app.example.").unwrap();
    rig.pass(Duration::from_secs(60)).await;
    assert_eq!(reason(&rig, &id, Check::Routing).await, Some(Reason::CnameOkWildcard));
    prove(&rig, &id, NAME).await;
    rig.pass(HOUR).await;
    let routing = evidence(&rig, &id, Check::Routing).await.unwrap().finding;
    assert_eq!(routing.reason, Reason::WildcardShadowed);
    assert!(routing.advice.contains("add a CNAME record for shop.acme.test itself that points to acme.app.example"));
    nothing_was_spent(&rig).await;
    rig.zones.add("shop.acme.test. 60 IN CNAME acme.app.example.").unwrap();
    rig.until_active(&id, HOUR).await;
}

/// Mixed addresses never get as far as a request.
#[tokio::test]
async fn a_second_address_that_leads_elsewhere_costs_nothing() {
    let cases = [
        ("acme.test", "AAAA 2001:db8:bad::7", Reason::AaaaPointsElsewhere),
        ("acme.test", "A 203.0.113.7", Reason::AddressMixed),
        (NAME, "AAAA 2001:db8:bad::7", Reason::AaaaPointsElsewhere),
        (NAME, "A 198.51.100.80", Reason::AddressMixed),
    ];
    for (seed, (name, other, expected)) in (60..).zip(cases) {
        let rig = world(seed).await;
        let id = claimed(&rig, name).await;
        rig.zones.add(&format!("{name}. 60 IN A {OURS}")).unwrap();
        rig.zones.add(&format!("{name}. 60 IN {other}")).unwrap();
        prove(&rig, &id, name).await;
        rig.pass(2 * HOUR).await;
        assert_eq!(reason(&rig, &id, Check::Routing).await, Some(expected), "{}", rig.story(&id).await);
        assert!(rig.edge_side.asked().is_empty(), "nothing needs to be asked: {:?}", rig.edge_side.asked());
        nothing_was_spent(&rig).await;
        rig.zones.remove(&format!("{name}. 60 IN {other}")).unwrap();
        rig.until_active(&id, 2 * HOUR).await;
    }
}

/// A proxy that does not pass requests on is told with what was met there; whatever it answers, the CA is not asked.
#[tokio::test]
async fn a_proxy_that_keeps_requests_to_itself_is_told_what_it_said() {
    let cases: [(Says, &str); 7] = [
        (always(|_| Err(refused())), "198.51.100.80: the connection was refused"),
        (always(|_| Err(ReachError::TimedOut(Duration::from_secs(10)))), "198.51.100.80: no answer within 10 seconds"),
        (
            always(|_| Ok(page(403, "cloudflare", "<title>Blocked</title>\u{1b}<script>alert(1)</script>"))),
            "another server (cloudflare) answered with status 403, saying “Blocked alert(1)”",
        ),
        (always(|_| Ok(page(200, "old", "tok.wrong"))), "another server (old) answered with status 200, saying “tok.wrong”"),
        (
            always(|place| Ok(to(place, true, "www.acme.test"))),
            "sent on to https://www.acme.test/.well-known/acme-challenge/…",
        ),
        (
            always(|_| {
                Ok(Reply {
                    sent: Some(Sent::Astray {
                        location: "https://10.0.0.1/".to_owned(),
                        why: "only a redirect to a hostname is followed",
                    }),
                    ..page(302, "x", "")
                })
            }),
            "sent on to “https://10.0.0.1/”: only a redirect to a hostname is followed",
        ),
        (always(|place| Ok(to(place, !place.tls, NAME))), "sent on again after ten redirects"),
    ];
    for (seed, (says, line)) in (70..).zip(cases) {
        let rig = world(seed).await;
        let id = claimed(&rig, NAME).await;
        rig.zones.add(&format!("{NAME}. 60 IN A {PROXY}")).unwrap();
        rig.zones.add("www.acme.test. 60 IN A 203.0.113.7").unwrap();
        rig.edge_side.at("www.acme.test", "203.0.113.7", always(|_| Ok(page(404, "nginx", "no such page"))));
        rig.edge_side.at(NAME, PROXY, says);
        prove(&rig, &id, NAME).await;
        rig.pass(HOUR).await;
        let routing = evidence(&rig, &id, Check::Routing).await.unwrap().finding;
        assert_eq!((routing.reason, routing.verdict()), (Reason::ProxiedByCdn, Verdict::Fail), "{line}");
        assert!(routing.observed.iter().any(|o| o.contains(line)), "{line}: {:?}", routing.observed);
        assert!(routing.advice.contains("We tried a request through the proxy"), "{}", routing.advice);
        assert!(!routing.advice.contains('<') && !routing.advice.contains('\u{1b}'), "{}", routing.advice);
        nothing_was_spent(&rig).await;
        rig.edge_side.all_well();
        rig.until_active(&id, DAY).await;
        assert_eq!(reason(&rig, &id, Check::Routing).await, Some(Reason::ProxiedReachable));
    }
}

/// Nobody can make us send requests to a name that is not theirs.
#[tokio::test]
async fn behind_a_proxy_nothing_is_tried_before_ownership_is_proven() {
    let rig = world(80).await;
    let id = claimed(&rig, NAME).await;
    rig.zones.add(&format!("{NAME}. 60 IN A {PROXY}")).unwrap();
    rig.pass(HOUR).await;
    assert_eq!(reason(&rig, &id, Check::Routing).await, Some(Reason::ProxiedByCdn));
    assert!(rig.edge_side.asked().is_empty(), "{:?}", rig.edge_side.asked());
}

/// A proxy that sends everything to https, to www, or both, as the CA would follow it.
#[tokio::test]
async fn redirects_that_end_at_our_edge_are_fine() {
    let rig = world(81).await;
    let id = claimed(&rig, NAME).await;
    rig.zones.add(&format!("{NAME}. 60 IN A {PROXY}")).unwrap();
    rig.zones.add(&format!("www.acme.test. 60 IN A {OURS}")).unwrap();
    rig.edge_side.at(NAME, PROXY, always(|place| Ok(to(place, true, if place.tls { "www.acme.test" } else { NAME }))));
    prove(&rig, &id, NAME).await;
    rig.until_active(&id, HOUR).await;
    let routing = evidence(&rig, &id, Check::Routing).await.unwrap().finding;
    assert!(routing.observed.iter().any(|o| o.contains("sent on to https://www.acme.test/")), "{:?}", routing.observed);
    let asked = rig.edge_side.asked();
    assert!(asked.iter().any(|a| a.starts_with("https://shop.acme.test/.well-known/acme-challenge/nameplate-preflight-")));
}

/// A name that stops to reach us between the look and the preflight: found out before it takes a turn, told once, and mended.
#[tokio::test]
async fn a_name_that_fails_its_preflight_holds_no_slot() {
    let rig = world(82).await;
    let id = claimed(&rig, NAME).await;
    rig.zones.add(&format!("{NAME}. 60 IN A {PROXY}")).unwrap();
    prove(&rig, &id, NAME).await;
    app::account::ensure_all(&rig.app).await.unwrap();
    app::advance::advance(&rig.new_worker(), &id).await.unwrap();
    assert_eq!(domain(&rig, &id).await.claim.as_str(), "queued");
    rig.edge_side.at(NAME, PROXY, always(|_| Ok(page(404, "nginx", "404 Not Found"))));
    app::dispatch::round(&rig.app).await.unwrap();
    app::advance::advance(&rig.new_worker(), &id).await.unwrap();
    let finding = evidence(&rig, &id, Check::Preflight).await.unwrap().finding;
    assert_eq!(finding.reason, Reason::PreflightAnsweredByAnother);
    assert!(finding.observed.iter().any(|o| o.contains("198.51.100.80: another server (nginx) answered with status 404")));
    assert!(finding.observed.iter().any(|o| o.contains("our own name acme.app.example: 192.0.2.80: our server answered")));
    assert_eq!(rig.domain_text(&id, "standing").await.as_deref(), Some("preflight_answered_by_another"));
    assert_eq!(rig.domain_text(&id, "acts").await.as_deref(), Some("tenant"));
    app::dispatch::round(&rig.app).await.unwrap();
    nothing_was_spent(&rig).await;
    let told = rig.events(&id).await.iter().filter(|kind| *kind == "preflight_failed").count();
    assert_eq!(told, 1, "{:?}", rig.events(&id).await);
    rig.edge_side.all_well();
    rig.until_active(&id, HOUR).await;
    assert!(rig.events(&id).await.contains(&"preflight_passed".to_owned()), "{:?}", rig.events(&id).await);
}

/// A grant that is in hand when the name no longer reaches us goes back, and its spends with it.
#[tokio::test]
async fn a_grant_goes_back_when_the_preflight_fails() {
    let rig = world(83).await;
    let id = claimed(&rig, NAME).await;
    rig.zones.add(&format!("{NAME}. 60 IN A {PROXY}")).unwrap();
    prove(&rig, &id, NAME).await;
    app::account::ensure_all(&rig.app).await.unwrap();
    for _ in 0..2 {
        app::advance::advance(&rig.new_worker(), &id).await.unwrap();
    }
    // It waits its turn for longer than a preflight is good for.
    rig.hand.advance(Duration::from_secs(130));
    rig.edge_follows().await;
    app::dispatch::round(&rig.app).await.unwrap();
    assert_eq!(rig.count(sql("SELECT count(*) AS n FROM grants WHERE state = 'open'")).await, 1);
    // The look before the order still gets through; the preflight after it does not.
    let looked = Arc::new(AtomicBool::new(false));
    let edge = rig.edge_side.clone();
    rig.edge_side.at(
        NAME,
        PROXY,
        always(move |place| if looked.swap(true, Ordering::SeqCst) { Err(refused()) } else { Ok(edge.edge_says(place)) }),
    );
    for _ in 0..2 {
        app::advance::advance(&rig.new_worker(), &id).await.unwrap();
    }
    assert_eq!(reason(&rig, &id, Check::Preflight).await, Some(Reason::PreflightUnreachable), "{}", rig.story(&id).await);
    nothing_was_spent(&rig).await;
    let held = rig.events(&id).await;
    assert!(held.ends_with(&["preflight_failed".to_owned(), "order_held_back".to_owned()]), "{held:?}");
    rig.edge_side.all_well();
    rig.until_active(&id, HOUR).await;
    assert_eq!(rig.ca.state().counters().orders_by_name.get(NAME), Some(&1));
}

/// Our own outage is told as ours, is over soon after it is over, and spends nothing.
#[tokio::test]
async fn our_own_outage_blames_nobody_else() {
    let outages: [Says; 3] = [
        always(|_| Err(refused())),
        always(|_| Ok(page(404, "someone", "404"))),
        always(|_| Err(ReachError::TimedOut(Duration::from_secs(10)))),
    ];
    for (seed, says) in (84..).zip(outages) {
        let rig = world(seed).await;
        let id = claimed(&rig, NAME).await;
        rig.publish(&id, NAME).await;
        rig.edge_side.at("", OURS, says);
        rig.pass(3 * HOUR).await;
        let finding = evidence(&rig, &id, Check::Preflight).await.unwrap().finding;
        assert_eq!((finding.reason, finding.verdict()), (Reason::PreflightOwnOutage, Verdict::Unknown));
        assert_eq!(finding.reason.acts(), Actor::Platform);
        assert_eq!(rig.domain_text(&id, "acts").await.as_deref(), Some("platform"));
        assert_eq!(domain(&rig, &id).await.claim.as_str(), "queued", "the name stays the tenant's");
        nothing_was_spent(&rig).await;
        let told = rig.events(&id).await.iter().filter(|kind| *kind == "preflight_unknown").count();
        assert_eq!(told, 1, "it is told once: {:?}", rig.events(&id).await);
        rig.edge_side.all_well();
        rig.until_active(&id, Duration::from_secs(150)).await;
    }
}

/// An operator whose control plane cannot reach its own edges switches the preflight off.
#[tokio::test]
async fn a_preflight_can_be_switched_off() {
    let mut rig = world(88).await;
    let mut settings = Settings::clone(&rig.app.settings);
    settings.preflight = false;
    rig.app.settings = Arc::new(settings);
    let id = claimed(&rig, NAME).await;
    rig.publish(&id, NAME).await;
    rig.edge_side.at("", OURS, always(|_| Err(refused())));
    rig.until_active(&id, HOUR).await;
    assert_eq!(reason(&rig, &id, Check::Preflight).await, Some(Reason::PreflightOff));
    assert!(!rig.edge_side.asked().iter().any(|a| a.contains("nameplate-preflight")), "{:?}", rig.edge_side.asked());
}

/// A live name whose proxy is turned elsewhere is found out by the daily look; our own outage in between changes nothing.
#[tokio::test]
async fn the_daily_look_looks_behind_the_proxy() {
    let rig = world(89).await;
    let id = claimed(&rig, NAME).await;
    rig.zones.add(&format!("{NAME}. 60 IN A {PROXY}")).unwrap();
    prove(&rig, &id, NAME).await;
    rig.until_active(&id, HOUR).await;
    app::routine::batch(&rig.app).await.unwrap();
    let day = async || {
        rig.hand.advance(DAY);
        rig.edge_follows().await;
        let mut differ = 0;
        loop {
            let batch = app::routine::batch(&rig.app).await.unwrap();
            differ += batch.differ;
            if !batch.more {
                break;
            }
        }
        rig.everything_once(&rig.new_worker()).await;
        differ
    };
    rig.edge_side.at("", OURS, always(|_| Err(refused())));
    rig.edge_side.at(NAME, PROXY, always(|_| Ok(page(522, "cloudflare", "timed out"))));
    assert_eq!(day().await, 0, "our own outage says nothing of the proxy");
    assert_eq!(reason(&rig, &id, Check::Routing).await, Some(Reason::ProxiedReachable));
    rig.edge_side.all_well();
    rig.edge_side.at(NAME, PROXY, always(|_| Ok(page(200, "shop", "welcome to the old shop"))));
    assert_eq!(day().await, 1);
    assert_eq!(reason(&rig, &id, Check::Routing).await, Some(Reason::ProxiedByCdn));
    assert_eq!(domain(&rig, &id).await.tie.as_str(), "held", "a proxy says nothing of the tie while the record is there");
    assert!(rig.serial_at_edge(NAME).is_some());
    assert_eq!(day().await, 0, "and it is told once");
}

/// Answers no request for a tenant's name.
struct Hangs {
    ours: Arc<dyn Reach>,
    asked: Mutex<Vec<String>>,
}

#[async_trait]
impl Reach for Hangs {
    async fn served(&self, host: &Hostname, addresses: &[IpAddr]) -> Vec<reach::Answer<Served>> {
        self.ours.served(host, addresses).await
    }

    async fn ask(&self, place: &Place, addresses: &[IpAddr]) -> Vec<reach::Answer<Reply>> {
        if !place.host.as_str().ends_with("acme.test") {
            return self.ours.ask(place, addresses).await;
        }
        self.asked.lock().unwrap().push(place.host.to_string());
        std::future::pending().await
    }
}

/// A tenant whose names lie behind a proxy that hangs has some of the workers for them, and never all.
#[tokio::test]
async fn origins_that_hang_behind_a_proxy_hold_few_workers_and_nobody_elses_names() {
    let mut rig = world(94).await;
    let hangs = Arc::new(Hangs { ours: rig.app.reach.clone(), asked: Mutex::default() });
    rig.app.reach = hangs.clone();
    let mut ids = Vec::new();
    for (slug, names) in [("acme", 6), ("beta", 1)] {
        let tenant = rig.tenant(slug).await;
        for n in 0..names {
            let name = format!("{slug}{n}.acme.test");
            let id = rig.claim(&tenant, &name).await;
            rig.zones.add(&format!("{name}. 60 IN A {PROXY}")).unwrap();
            prove(&rig, &id, &name).await;
            ids.push(id);
        }
    }
    let step = |id: &DomainId| {
        let (app, id) = (rig.app.clone(), id.clone());
        async move { app::advance::advance(&app, &id).await }
    };
    let asked = || hangs.asked.lock().unwrap().len();
    // The first one is waited for, as long as that may take.
    let first = tokio::spawn(step(&ids[0]));
    until("the first name is tried", async || asked() == 1).await;
    rig.hand.advance(Duration::from_secs(13));
    until("the first step ends", async || first.is_finished()).await;
    first.await.unwrap().unwrap();
    hangs.asked.lock().unwrap().clear();
    // From then on two at once; the other three wait for nothing, and say nothing new.
    let mut steps = JoinSet::new();
    for id in &ids[1..] {
        steps.spawn(step(id));
    }
    let mut ended = 0;
    until("three are not tried", async || {
        while let Some(done) = steps.try_join_next() {
            done.unwrap().unwrap();
            ended += 1;
        }
        ended == 3
    })
    .await;
    until("the others are tried", async || asked() == 3).await;
    assert!(hangs.asked.lock().unwrap().contains(&"beta0.acme.test".to_owned()), "another tenant's name is among them");
    let mut untried = 0;
    for id in &ids[1..] {
        if let Some(e) = evidence(&rig, id, Check::Routing).await {
            assert_eq!(e.finding.reason, Reason::ProxiedByCdn);
            assert!(e.finding.observed.iter().any(|line| line.contains("at the next look")), "{:?}", e.finding.observed);
            untried += 1;
        }
    }
    assert_eq!(untried, 3);
    steps.shutdown().await;
}
