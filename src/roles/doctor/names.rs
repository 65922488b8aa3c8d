//! DNS, as our own resolvers answer: the targets that tenants are told, and the portal.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::net::TcpStream;

use super::super::adapters;
use super::Report;
use crate::config::Config;
use crate::dns::Look as _;
use crate::dns::Observers;
use crate::env::Env;
use crate::model::hostname::Hostname;
use crate::model::look::{Ask, Kind, Observer, Platform, RoutingAsk};
use crate::telemetry::Chain;

const PART: &str = "dns";
/// How long a port may take to answer.
const CONNECT: Duration = Duration::from_secs(5);

pub(super) async fn examine(config: &Config, env: &Env, report: &mut Report) {
    let observers = match adapters::observers(&config.dns, env) {
        Ok(observers) => observers,
        Err(e) => {
            let advice = "set dns.resolvers to resolvers that this machine may ask";
            return report.broken(PART, "resolvers", Chain(&e).to_string(), advice);
        }
    };
    signatures(&observers, report).await;
    let mut edges = BTreeSet::new();
    if let Some(suffix) = &config.routing.canonical_suffix {
        // A label that no tenant has: only a wildcard answers for it.
        let probe = format!("nameplate-doctor-{}.{}", env.draw_hex(4), suffix.as_str());
        let what = format!("*.{}", suffix.as_str());
        let advice = format!("publish a wildcard: {what} with A and AAAA records, or a CNAME, that lead to the edges");
        edges = name(&observers, &probe, &what, &advice, report).await;
        ours(config, &what, &edges, report);
    }
    if let Some(target) = &config.routing.shared_target {
        let advice = format!("publish A and AAAA records of {} that lead to the edges", target.as_str());
        edges.extend(name(&observers, target.as_str(), target.as_str(), &advice, report).await);
    }
    if let Some(target) = &config.routing.apex_target {
        let advice = format!("publish A and AAAA records of {} with the edges' fixed addresses", target.as_str());
        let found = name(&observers, target.as_str(), target.as_str(), &advice, report).await;
        ours(config, target.as_str(), &found, report);
    } else if config.routing.apex_addresses.is_empty() {
        let seen = "neither routing.apex_target nor routing.apex_addresses is set";
        report.warn(
            PART,
            "apex names",
            seen,
            "set one, or tenants cannot use names without a label in front, such as acme.com",
        );
    }
    if let Some(url) = &config.server.public_url {
        let host = url.host();
        if host.parse::<IpAddr>().is_ok() || host.starts_with('[') || host == "localhost" {
            let advice = "set server.public_url to the https origin that people reach the portal by";
            match config.reach.allow_loopback {
                true => report.ok(PART, "server.public_url", format!("{host} needs no DNS")),
                false => report.warn(PART, "server.public_url", format!("{host} is an address, not a name"), advice),
            }
        } else {
            let advice = format!("publish A and AAAA records of {host} that lead to what stands before server.listen");
            name(&observers, host, host, &advice, report).await;
        }
    }
    for (port, whose) in [(config.reach.http_port, "plain HTTP"), (config.reach.https_port, "HTTPS")] {
        for address in &edges {
            reachable(SocketAddr::new(*address, port), whose, env, report).await;
        }
    }
}

/// Who of the resolvers checks signatures.
async fn signatures(observers: &Observers, report: &mut Report) {
    let told = observers.validating().await;
    let checks = |who: Option<bool>| match who {
        Some(true) => "checks signatures",
        Some(false) => "does not check signatures",
        None => "does not answer about the root",
    };
    let seen = told.iter().map(|(label, who)| format!("{label} {}", checks(*who))).collect::<Vec<_>>().join("; ");
    if told.first().is_some_and(|(_, who)| *who == Some(true)) {
        report.ok(PART, "resolvers and DNSSEC", seen);
    } else {
        // The daily recheck asks the first one only.
        let advice = "put a resolver that validates DNSSEC first in dns.resolvers; else a domain with broken signatures looks right \
                      here, and the CA refuses it";
        report.warn(PART, "resolvers and DNSSEC", seen, advice);
    }
}

/// The addresses of a name by every resolver; says what they agree on.
async fn name(observers: &Observers, asked: &str, what: &str, advice: &str, report: &mut Report) -> BTreeSet<IpAddr> {
    let mut ask = Ask::new(Hostname::trusted(asked), Platform::default());
    ask.routing = Some(RoutingAsk {
        accepted_targets: vec![asked.to_owned()],
        target_for_record: asked.to_owned(),
        max_chain: 8,
        ..RoutingAsk::default()
    });
    let seen = observers.look(&ask).await;
    let answers: Vec<_> = seen
        .observations
        .iter()
        // The look also asks for the zone's own servers.
        .filter(|o| o.probe.name == asked && matches!(o.probe.observer, Observer::Resolver(_)))
        .filter(|o| matches!(o.probe.kind, Kind::A | Kind::Aaaa))
        .collect();
    let all: BTreeSet<IpAddr> = answers.iter().flat_map(|o| o.answer.addresses()).collect();
    let silent: BTreeSet<String> = answers
        .iter()
        .filter(|o| !o.answer.definite())
        .map(|o| format!("{}: {}", o.probe.observer.label(), o.answer.how()))
        .collect();
    let listed = |all: &BTreeSet<IpAddr>| all.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(", ");
    let silence = silent.into_iter().collect::<Vec<_>>().join("; ");
    if all.is_empty() && !silence.is_empty() {
        report.broken(PART, what, silence, "check that dns.resolvers answer from this machine (UDP and TCP port 53)");
    } else if all.is_empty() {
        report.broken(PART, what, "it has no address", advice);
    } else if !silence.is_empty() {
        let seen = format!("{}; but {silence}", listed(&all));
        report.warn(PART, what, seen, "check the resolvers of dns.resolvers that do not answer");
    } else {
        report.ok(PART, what, listed(&all));
    }
    all
}

/// Whether the addresses are among those that are configured as ours.
fn ours(config: &Config, what: &str, found: &BTreeSet<IpAddr>, report: &mut Report) {
    let own = &config.routing.apex_addresses;
    let others: Vec<String> = found.iter().filter(|a| !own.contains(a)).map(IpAddr::to_string).collect();
    if !own.is_empty() && !others.is_empty() {
        let seen = format!("{} is not among routing.apex_addresses", others.join(", "));
        report.warn(PART, what, seen, "add the address where it is an edge's, or correct the record");
    }
}

/// Whether something answers at a port of the edges, by the public address.
async fn reachable(at: SocketAddr, whose: &str, env: &Env, report: &mut Report) {
    let what = format!("{whose} at {at}");
    let advice = "start an edge there, and let visitors and the CA through the firewall to it";
    tokio::select! {
        connected = TcpStream::connect(at) => match connected {
            Ok(_) => report.ok("ports", what, "connected"),
            Err(e) => report.broken("ports", what, e.to_string(), advice),
        },
        () = env.sleep(CONNECT) => report.broken("ports", what, format!("no answer within {} s", CONNECT.as_secs()), advice),
    }
}
