//! Name servers that mean harm, on real sockets: what they can make a look cost, and that no other look pays for it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use nameplate::dns::wire::{self, Asked};
use nameplate::dns::{Limits, Look, Observers};
use nameplate::env::Env;
use nameplate::model::checks;
use nameplate::model::evidence::{Finding, Tie};
use nameplate::model::look::{Answer, Ask, Data, Outcome, Rr};
use nameplate::sandbox::dns::{Sockets, ZoneStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinHandle;

use crate::support::dns_ask::{VALUE, caa, ownership, routing, world};
use crate::support::dns_world::{self, LoopbackDns};

/// What the server of `example.com` does with a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trick {
    /// Nothing.
    Silence,
    /// Packets without end that answer something else.
    Flood,
    /// "Too long, come by TCP", and there an octet now and then.
    Drip,
    /// As many TXT records as fit into 64 KB.
    Heap,
    /// As many aliases, each leading to the next.
    Aliases,
    /// On to thirty servers of a deeper zone, each time.
    Referrals,
}

struct Hostile {
    at: SocketAddr,
    asked: Arc<AtomicUsize>,
    tasks: [JoinHandle<()>; 2],
}

impl Drop for Hostile {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

fn rr(name: String, data: Data) -> Rr {
    Rr { name, ttl: 300, data }
}

/// The answer in octets; none when it must come by TCP.
fn answer(trick: Trick, asked: &Asked, n: usize) -> Vec<u8> {
    let mut answer = Answer { authoritative: true, ..Answer::bare(Outcome::NoError) };
    match trick {
        Trick::Heap => {
            let text = |i: usize| Data::Txt(vec![format!("{i:06}{}", "x".repeat(24)).into_bytes()]);
            answer.records = (0..1_400).map(|i| rr(asked.name.clone(), text(i))).collect();
        }
        Trick::Aliases => {
            let name = |i: usize| if i == 0 { asked.name.clone() } else { format!("a{i}.example.com") };
            answer.records = (0..1_900).map(|i| rr(name(i), Data::Cname(name(i + 1)))).collect();
        }
        Trick::Referrals => {
            answer.authoritative = false;
            let deeper = asked.name.clone();
            for i in 0..30 {
                let host = format!("ns{i}.r{n}.example.com");
                answer.authority.push(rr(deeper.clone(), Data::Ns(host.clone())));
                answer.additional.push(rr(host, Data::A(Ipv4Addr::new(192, 0, 2, 1))));
            }
        }
        Trick::Silence | Trick::Flood | Trick::Drip => {}
    }
    wire::reply(asked, &answer, false, 65_535).unwrap()
}

async fn hostile(trick: Trick) -> Hostile {
    let Sockets { udp, tcp } = Sockets::bind(IpAddr::V4(Ipv4Addr::LOCALHOST), 0).await.unwrap();
    let at = tcp.local_addr().unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let packets = tokio::spawn(async move {
        let mut octets = vec![0; 4096];
        loop {
            let Ok((length, from)) = udp.recv_from(&mut octets).await else { continue };
            let n = count.fetch_add(1, Ordering::SeqCst);
            let Some(question) = wire::asked(&octets[..length]) else { continue };
            match trick {
                Trick::Silence => {}
                Trick::Flood => {
                    for _ in 0..2_000 {
                        let _ = udp.send_to(&[0xee; 1_400], from).await;
                    }
                }
                Trick::Referrals => drop(udp.send_to(&answer(trick, &question, n), from).await),
                Trick::Drip | Trick::Heap | Trick::Aliases => {
                    drop(udp.send_to(&wire::cut(&question, false).unwrap(), from).await);
                }
            }
        }
    });
    let count = asked.clone();
    let streams = tokio::spawn(async move {
        loop {
            let Ok((mut stream, _)) = tcp.accept().await else { continue };
            let n = count.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(async move {
                let mut octets = vec![0; usize::from(stream.read_u16().await?)];
                stream.read_exact(&mut octets).await?;
                let Some(question) = wire::asked(&octets) else { return Ok(()) };
                let answer = answer(trick, &question, n);
                let length = u16::try_from(answer.len()).unwrap().to_be_bytes();
                if trick != Trick::Drip {
                    return stream.write_all(&[&length[..], &answer].concat()).await;
                }
                stream.write_all(&u16::MAX.to_be_bytes()).await?;
                while stream.write_all(&[0]).await.is_ok() {
                    Env::real().sleep(Duration::from_millis(20)).await;
                }
                std::io::Result::Ok(())
            });
        }
    });
    Hostile { at, asked, tasks: [packets, streams] }
}

/// All three checks at once.
fn everything(hostname: &str) -> Ask {
    let mut ask = ownership(hostname);
    ask.routing = routing(hostname).routing;
    ask.caa = caa(hostname).caa;
    ask
}

/// `example.com` at the hostile server, and `example.net` at an honest one; the resolvers are our own.
async fn met_by(trick: Trick, limits: Limits) -> (LoopbackDns, Hostile) {
    let world = two_zones();
    let bad = hostile(trick).await;
    let honest = [("ns1.net.example".to_owned(), IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)))];
    let at = [(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), bad.at)];
    (dns_world::serve_with(&world, &honest, &at, limits).await, bad)
}

fn two_zones() -> ZoneStore {
    let world = world(&["shop.example.com. 300 IN CNAME edge.platform.example."]);
    world.add_zone("example.net", "ns1.net.example", IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)));
    for line in [
        "shop.example.net. 300 IN CNAME edge.platform.example.",
        &format!("_nameplate-challenge.shop.example.net. 300 IN TXT \"{VALUE}\""),
    ] {
        world.add(line).unwrap();
    }
    world
}

/// Short enough for a test, in the proportions of the real ones.
fn short() -> Limits {
    Limits { per_query: Duration::from_millis(600), time: Duration::from_secs(2), ..Limits::default() }
}

fn bounded(findings: &[Finding]) {
    assert_eq!(findings.len(), 3);
    for finding in findings {
        let row = serde_json::to_string(finding).unwrap();
        assert!(row.len() < 20_000, "{} octets in a row: {}", row.len(), finding.reason.code());
    }
}

#[test]
fn the_limits_are_those_that_are_promised() {
    let limits = Limits::default();
    assert_eq!((limits.queries, limits.octets, limits.time), (64, 1_000_000, Duration::from_secs(10)));
}

async fn costs_no_more(trick: Trick) -> (Vec<Finding>, Option<String>) {
    let (dns, bad) = met_by(trick, short()).await;
    let ask = everything("shop.example.com");
    let began = Env::real().now();
    let seen = dns.observers.look(&ask).await;
    let findings = checks::judge(&ask, &seen);
    assert!(Env::real().now().since(began) < Duration::from_secs(4), "{trick:?}: {:?}", Env::real().now().since(began));
    let asked = bad.asked.load(Ordering::SeqCst);
    assert!(asked <= 64, "{trick:?}: asked {asked} times");
    let octets: usize = seen.observations.iter().map(|o| o.answer.size).sum();
    assert!(octets <= 1_000_000, "{trick:?}: {octets} octets");
    bounded(&findings);
    // Whatever it does, it is never proof, and never costs anybody a name.
    assert_ne!(findings[0].reason.tie(), Tie::Present, "{trick:?}: {}", findings[0].reason.code());
    (findings, seen.cut_short)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silence_costs_its_time_and_says_nothing() {
    let (findings, _) = costs_no_more(Trick::Silence).await;
    assert_eq!(findings[0].reason.code(), "dns_lookup_failed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_packets_ends_the_look_at_a_megabyte() {
    let (findings, cut) = costs_no_more(Trick::Flood).await;
    assert_eq!((findings[0].reason.code(), findings[0].reason.tie()), ("dns_lookup_failed", Tie::Silent), "{cut:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_drips_is_given_up() {
    let (findings, _) = costs_no_more(Trick::Drip).await;
    assert_eq!((findings[0].reason.code(), findings[0].reason.tie()), ("dns_lookup_failed", Tie::Silent));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_records_do_not_fill_a_page() {
    let (findings, _) = costs_no_more(Trick::Heap).await;
    assert!(findings[0].observed.len() <= 25, "{} lines", findings[0].observed.len());
    assert!(findings[0].observed.iter().all(|line| line.chars().count() <= 601));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_of_nothing_but_aliases_costs_no_time() {
    let (findings, _) = costs_no_more(Trick::Aliases).await;
    assert_ne!(findings[0].reason.code(), "txt_ok");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_referrals_blows_itself_out() {
    let (findings, _) = costs_no_more(Trick::Referrals).await;
    assert_eq!(findings[0].reason.tie(), Tie::Silent, "{}", findings[0].reason.code());
}

#[tokio::test]
async fn a_megabyte_is_all_that_is_taken_in() {
    let limits = Limits { octets: 100_000, ..short() };
    let (dns, _bad) = met_by(Trick::Heap, limits).await;
    let mut world = everything("shop.example.com");
    world.ownership.as_mut().unwrap().name = "_nameplate-challenge.shop.example.com".to_owned();
    let seen = dns.observers.look(&world).await;
    let octets: usize = seen.observations.iter().map(|o| o.answer.size).sum();
    assert!(octets <= 100_000, "{octets}");
    assert!(seen.cut_short.as_ref().is_some_and(|why| why.contains("100000 octets")), "{:?}", seen.cut_short);
    for finding in checks::judge(&world, &seen).iter().filter(|f| f.observed.iter().any(|o| o.contains("ended early"))) {
        assert_eq!(finding.reason.tie(), Tie::Silent);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hostile_zone_delays_no_other_look() {
    for trick in [Trick::Silence, Trick::Drip, Trick::Flood] {
        let (dns, _bad) = met_by(trick, short()).await;
        let look = |dns: Observers, name: &'static str| async move { (name, dns.look(&everything(name)).await) };
        let bad: Vec<_> = (0..8).map(|_| tokio::spawn(look(dns.observers.clone(), "shop.example.com"))).collect();
        let ask = everything("shop.example.net");
        for _ in 0..10 {
            let began = Env::real().now();
            let seen = dns.observers.look(&ask).await;
            assert!(
                Env::real().now().since(began) < Duration::from_millis(1_500),
                "{trick:?}: {:?}",
                Env::real().now().since(began)
            );
            let codes: Vec<&str> = checks::judge(&ask, &seen).iter().map(|f| f.reason.code()).collect();
            assert_eq!(codes, ["txt_ok", "cname_ok", "caa_absent"], "{trick:?}");
        }
        for look in bad {
            look.await.unwrap();
        }
    }
}

#[tokio::test]
async fn what_a_stranger_publishes_is_shown_escaped() {
    let world = world(&[
        r#"_nameplate-challenge.shop.example.com. 300 IN TXT "nameplate-verify=\000\027[31m\226\128\174<script>\255""#,
        r"shop.example.com. 300 IN CNAME \226\128\174\<b\>.example.net.",
        r#"example.com. 300 IN CAA 0 issue "ca.example\226\128\174\000; a=<i>""#,
    ]);
    let servers = [("ns1.dns.example".to_owned(), IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)))];
    let dns = dns_world::serve(&world, &servers).await;
    let ask = everything("shop.example.com");
    let seen = dns.observers.look(&ask).await;
    let findings = checks::judge(&ask, &seen);
    assert_eq!(findings[0].reason.code(), "txt_value_mismatch");
    let expected = r#"ns1.dns.example: TXT _nameplate-challenge.shop.example.com = "nameplate-verify=\000\027[31m\226\128\174<script>\255""#;
    assert_eq!(findings[0].observed, [expected]);
    for finding in &findings {
        for text in finding.observed.iter().chain([&finding.advice, &finding.expected]) {
            // Our own arrow and dots aside, everything is plain.
            let odd: Vec<char> = text.chars().filter(|c| !(' '..='~').contains(c) && !"→…".contains(*c)).collect();
            assert!(odd.is_empty(), "{odd:?} in {text}");
        }
    }
}
