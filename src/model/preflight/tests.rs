use proptest::prelude::*;

use super::*;
use crate::model::evidence::{Actor, Tie, Verdict};

const OURS: &str = "192.0.2.80";
const V6: &str = "2001:db8::80";
const THEIRS: &str = "198.51.100.7";
const THEIRS_V6: &str = "2001:db8:bad::7";

fn host() -> Hostname {
    Hostname::trusted("shop.acme.com")
}

fn trail(address: &str, met: Met) -> Trail {
    Trail { address: address.parse().unwrap(), hops: Vec::new(), met }
}

fn sent(address: &str, to: &str, shown: Option<&str>, met: Met) -> Trail {
    let hop = Hop { to: to.to_owned(), shown: shown.map(|name| vec![name.to_owned()]) };
    Trail { address: address.parse().unwrap(), hops: vec![hop], met }
}

fn not_found() -> Met {
    Met::Answer { status: 404, server: Some("nginx".to_owned()), said: "404 Not Found".to_owned() }
}

fn control(met: Met) -> Control {
    Control { name: "acme.app.example".to_owned(), trails: vec![trail(OURS, met)] }
}

fn met(trails: &[Trail]) -> Finding {
    judge(&host(), trails, Some(&control(Met::Edge)), &[])
}

#[test]
fn each_situation_has_its_reason_and_says_what_was_met_where() {
    let cases: [(Vec<Trail>, Reason, &str); 14] = [
        (vec![trail(OURS, Met::Edge), trail(V6, Met::Edge)], Reason::PreflightOk, "our server answered"),
        (vec![trail(OURS, Met::Edge), trail(V6, Met::NoRoute)], Reason::PreflightOk, "no way to such an address"),
        (vec![], Reason::PreflightNoAddress, ""),
        (vec![trail(THEIRS, Met::Refused)], Reason::PreflightUnreachable, "198.51.100.7: the connection was refused"),
        (vec![trail(THEIRS, Met::Silent(10))], Reason::PreflightUnreachable, "no answer within 10 seconds"),
        (vec![trail(THEIRS, not_found())], Reason::PreflightAnsweredByAnother, "(nginx) answered with status 404"),
        (
            vec![trail(THEIRS, Met::Answer { status: 200, server: None, said: String::new() })],
            Reason::PreflightAnsweredByAnother,
            "another server answered with status 200, with an empty page",
        ),
        (
            vec![sent(THEIRS, "https://www.acme.com/", Some("acme.com"), not_found())],
            Reason::PreflightRedirected,
            "sent on to https://www.acme.com/ (with a certificate for acme.com), another server",
        ),
        (
            vec![trail(THEIRS, Met::Astray { location: "ftp://x".to_owned(), why: "only http".to_owned() })],
            Reason::PreflightRedirected,
            "sent on to “ftp://x”: only http",
        ),
        (vec![trail(THEIRS, Met::TooFar)], Reason::PreflightRedirected, "ten redirects"),
        (
            vec![sent(THEIRS, "http://gone.acme.com/", None, Met::Nowhere)],
            Reason::PreflightRedirected,
            "which has no address",
        ),
        (
            vec![trail(THEIRS_V6, not_found()), trail(OURS, Met::Edge)],
            Reason::PreflightIpv6Elsewhere,
            "2001:db8:bad::7: another server",
        ),
        (vec![trail(OURS, Met::Edge), trail(THEIRS, not_found())], Reason::PreflightMixed, "198.51.100.7: another server"),
        (
            vec![trail("10.0.0.1", Met::NotPublic("10.0.0.1 is a private address".to_owned()))],
            Reason::PreflightUnreachable,
            "a private address",
        ),
    ];
    for (trails, reason, line) in cases {
        let finding = met(&trails);
        assert_eq!(finding.reason, reason, "{trails:?}");
        assert!(line.is_empty() || finding.observed.iter().any(|o| o.contains(line)), "{line}: {:?}", finding.observed);
        assert_eq!((finding.check, reason.tie()), (Check::Preflight, Tie::Silent));
        assert!(finding.advice.ends_with('.') && finding.advice.contains("shop.acme.com"), "{}", finding.advice);
        if reason.acts() == Actor::Tenant {
            let at = trails.iter().find(|t| t.met != Met::Edge).unwrap().address.to_string();
            assert!(finding.advice.contains(&at), "says where: {}", finding.advice);
        }
    }
}

#[test]
fn our_own_outage_is_never_the_tenants() {
    for way in [Met::Refused, Met::Silent(10), not_found(), Met::NoTls("x".to_owned()), Met::TooFar] {
        // Our own name does not answer either, or has no address at all.
        let nowhere = Control { name: "acme.app.example".to_owned(), trails: Vec::new() };
        for control in [control(Met::Silent(10)), control(Met::NoRoute), nowhere] {
            let finding = judge(&host(), &[trail(THEIRS, way.clone())], Some(&control), &[]);
            assert_eq!(finding.reason, Reason::PreflightOwnOutage, "{way:?} {control:?}");
            assert!(finding.observed.iter().any(|o| o.contains("our own name acme.app.example")), "{:?}", finding.observed);
        }
        // It is an address of ours: by our own name, or by configuration.
        let finding = judge(&host(), &[trail(OURS, way.clone())], Some(&control(Met::Edge)), &[]);
        assert_eq!(finding.reason, Reason::PreflightOwnOutage, "{way:?}");
        let finding = judge(&host(), &[trail(V6, way.clone())], Some(&control(Met::Edge)), &[V6.parse().unwrap()]);
        assert_eq!(finding.reason, Reason::PreflightOwnOutage, "{way:?}");
    }
    assert_eq!(met(&[trail(V6, Met::NoRoute)]).reason, Reason::PreflightOwnOutage, "nothing could be tried");
}

#[test]
fn what_a_proxy_hides_is_what_a_request_met() {
    let routing = Finding {
        check: Check::Routing,
        reason: Reason::ProxiedByCdn,
        advice: "switch it off.".to_owned(),
        observed: vec!["A: shop.acme.com: 198.51.100.80".to_owned()],
        ..met(&[])
    };
    let behind = |met: &Finding, before| behind_proxy(routing.clone(), met, before);
    let reached = behind(&met(&[trail(THEIRS, Met::Edge)]), None);
    assert_eq!((reached.reason, reached.verdict()), (Reason::ProxiedReachable, Verdict::Pass));
    assert!(reached.observed.iter().any(|o| o == "a request: 198.51.100.7: our server answered"), "{:?}", reached.observed);
    let refused = behind(&met(&[trail(THEIRS, not_found())]), Some(Reason::ProxiedReachable));
    assert_eq!(refused.reason, Reason::ProxiedByCdn);
    assert!(refused.advice.starts_with("switch it off. ") && refused.advice.contains("nginx"), "{}", refused.advice);
    // Our own outage leaves it as it was.
    let outage = judge(&host(), &[trail(THEIRS, not_found())], Some(&control(Met::Refused)), &[]);
    assert_eq!(behind(&outage, Some(Reason::ProxiedReachable)).reason, Reason::ProxiedReachable);
    assert_eq!(behind(&outage, None).reason, Reason::ProxiedByCdn);
    assert_eq!(behind(&outage, None).advice, routing.advice, "and nothing is said against the proxy");
}

fn any_met() -> impl Strategy<Value = Met> {
    prop_oneof![
        Just(Met::Edge),
        Just(Met::NoRoute),
        Just(Met::Refused),
        Just(Met::TooFar),
        Just(Met::Nowhere),
        (1..40_u64).prop_map(Met::Silent),
        ".{0,40}".prop_map(Met::NotPublic),
        ".{0,40}".prop_map(Met::NoTls),
        (100..600_u16, ".{0,40}").prop_map(|(status, said)| Met::Answer { status, server: None, said }),
    ]
}

proptest! {
    /// A tenant has to act only where an address that is not ours did not lead to us while our own name did answer; it passes
    /// only where every way that could be tried ended at an edge, and at least one could.
    #[test]
    fn blame_needs_proof(
        ways in prop::collection::vec((0..4_usize, any_met()), 0..5), own in any_met(), configured: bool,
    ) {
        let trails: Vec<Trail> = ways.into_iter().map(|(at, met)| trail([OURS, V6, THEIRS, THEIRS_V6][at], met)).collect();
        let ours: Vec<IpAddr> = if configured { vec![V6.parse().unwrap()] } else { vec![] };
        let answers = own == Met::Edge;
        let finding = judge(&host(), &trails, Some(&control(own)), &ours);
        let tried: Vec<&Trail> = trails.iter().filter(|t| t.met != Met::NoRoute).collect();
        let foreign = |t: &&&Trail| t.address.to_string() != OURS && !ours.contains(&t.address);
        match finding.reason.acts() {
            Actor::Tenant => {
                prop_assert!(answers);
                prop_assert!(tried.iter().filter(foreign).any(|t| t.met != Met::Edge));
            }
            Actor::Platform => prop_assert!(!trails.is_empty()),
            _ => prop_assert!(trails.is_empty() || tried.iter().all(|t| t.met == Met::Edge)),
        }
        prop_assert_eq!(
            finding.verdict() == Verdict::Pass,
            !tried.is_empty() && tried.iter().all(|t| t.met == Met::Edge)
        );
    }
}
