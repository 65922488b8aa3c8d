//! A preflight in words: what was met at which address, and what to change.

use super::{Control, Hop, Met, Trail};
use crate::model::evidence::{Check, Finding};
use crate::model::hostname::Hostname;
use crate::model::reason::Reason;

/// Who asked.
const ASKED_BY: &str = "a request of ours over the internet";

pub(super) fn finding(
    host: &Hostname,
    reason: Reason,
    at: Option<&Trail>,
    trails: &[Trail],
    control: Option<&Control>,
) -> Finding {
    let mut observed: Vec<String> = trails.iter().map(line).collect();
    if let Some(control) = control {
        if control.trails.is_empty() {
            observed.push(format!("our own name {}: no address", control.name));
        }
        observed.extend(control.trails.iter().map(|trail| format!("our own name {}: {}", control.name, line(trail))));
    }
    Finding {
        check: Check::Preflight,
        reason,
        expected: format!("our server answers a request for http://{host}/ at every address of the name"),
        observed,
        seen_by: if trails.is_empty() { Vec::new() } else { vec![ASKED_BY.to_owned()] },
        advice: advice(host, reason, at, trails),
        found_at: None,
        found_via: None,
        record_to_publish: Vec::new(),
        dns_host: None,
        views: Vec::new(),
    }
}

/// One way in one line.
pub(super) fn line(trail: &Trail) -> String {
    let way: String = trail.hops.iter().map(hop).collect();
    format!("{}: {way}{}", trail.address, met(&trail.met))
}

fn hop(hop: &Hop) -> String {
    let shown = match hop.shown.as_deref() {
        None => String::new(),
        Some([]) => " (with a certificate for no name)".to_owned(),
        Some(names) => format!(" (with a certificate for {})", names.join(", ")),
    };
    format!("sent on to {}{shown}, ", hop.to)
}

fn met(met: &Met) -> String {
    match met {
        Met::Edge => "our server answered".to_owned(),
        Met::NoRoute => "not tried, because our own network has no way to such an address".to_owned(),
        Met::NotPublic(why) => format!("not tried: {why}"),
        Met::Refused => "the connection was refused".to_owned(),
        Met::Silent(seconds) => format!("no answer within {seconds} seconds"),
        Met::NoConnection(why) => format!("no connection: {why}"),
        Met::NoTls(why) => format!("no secure connection: {why}"),
        Met::NotHttp(why) => format!("the answer was not HTTP: {why}"),
        Met::Answer { status, server, said } => {
            let whose =
                server.as_ref().map_or_else(|| "another server".to_owned(), |name| format!("another server ({name})"));
            let body = if said.is_empty() { "with an empty page".to_owned() } else { format!("saying “{said}”") };
            format!("{whose} answered with status {status}, {body}")
        }
        Met::Astray { location, why } => format!("sent on to “{location}”: {why}"),
        Met::TooFar => "sent on again after ten redirects".to_owned(),
        Met::Nowhere => "which has no address".to_owned(),
    }
}

/// The way by which something was met, as the end of a sentence.
fn told(at: Option<&Trail>) -> String {
    at.map(line).unwrap_or_default()
}

fn advice(host: &Hostname, reason: Reason, at: Option<&Trail>, trails: &[Trail]) -> String {
    let (told, address) = (told(at), at.map(|t| t.address.to_string()).unwrap_or_default());
    let path = "/.well-known/acme-challenge/";
    match reason {
        Reason::PreflightOk => {
            let many = trails.iter().filter(|t| t.met == Met::Edge).count();
            let places = if many == 1 { "its address".to_owned() } else { format!("each of its {many} addresses") };
            format!("A request for {host} reached us at {places}; nothing needs to change.")
        }
        Reason::PreflightOff => {
            format!("Whether requests for {host} reach us was not tried before ordering; nothing needs to change.")
        }
        Reason::PreflightNoAddress => {
            format!(
                "{host} had no address when we tried a request to it; we will look again, and nothing needs to change now."
            )
        }
        Reason::PreflightUnreachable => format!(
            "A request for {host} did not get through ({told}); let the server or firewall at {address} pass requests on port 80 \
             on to us, or remove that address from the name."
        ),
        Reason::PreflightAnsweredByAnother => format!(
            "A request for {host} met a server that is not ours ({told}); let {address} pass requests for {path} on to us, or \
             remove that address from the name."
        ),
        Reason::PreflightRedirected => format!(
            "A request for {host} was sent on and did not reach us ({told}); take requests for {path} out of that redirect, or \
             let it lead to us."
        ),
        Reason::PreflightIpv6Elsewhere => format!(
            "Over IPv4 {host} reaches us, but over IPv6 it does not ({told}), and the certificate authority tries IPv6 first; \
             remove the address {address} from the name, or let it lead to us."
        ),
        Reason::PreflightMixed => format!(
            "{host} reaches us at some of its addresses and not at {address} ({told}); remove that address from the name, or let \
             it lead to us."
        ),
        _ => format!(
            "Our own servers did not answer our test of {host} as they should; this is our problem, we try again by ourselves and \
             you need not change anything."
        ),
    }
}

/// The advice for a name whose proxy passes requests on to us.
pub(super) fn proxied(routing: &Finding) -> String {
    let name = routing.record_to_publish.first().map_or("The name", |record| record.name.as_str());
    format!(
        "{name} is behind a proxy, and a request through it reached us; this works and nothing needs to change as long as the proxy \
         passes requests for /.well-known/acme-challenge/ on to us."
    )
}
