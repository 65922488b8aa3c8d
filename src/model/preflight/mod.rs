//! What a preflight met: requests through the public name, as the CA will make them, and what they say. Pure.
//!
//! A preflight comes between DNS that is right and an order. At each address of the name it asks for a token that only our
//! edges can answer, and follows where it is sent as the CA would. [`judge`] says what that means and whose move it is. What
//! always holds: an address of ours that does not answer as it should is our own outage, and nothing is said against a tenant
//! while our own name, asked in the same way, does not answer either. How to get it wrong: blame a tenant without the
//! [`Control`], or count an address that this machine has no route to.

mod words;

use std::net::IpAddr;

use super::evidence::{Check, Finding};
use super::hostname::Hostname;
use super::reason::Reason;

/// The end of one way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Met {
    /// The answer of an edge of ours.
    Edge,
    /// This machine has no way to such addresses, so it was not tried.
    NoRoute,
    /// No public address; why.
    NotPublic(String),
    /// The connection was refused.
    Refused,
    /// Nothing came within so many seconds.
    Silent(u64),
    /// No connection for another cause.
    NoConnection(String),
    /// TLS could not be agreed on.
    NoTls(String),
    /// Something that is not HTTP.
    NotHttp(String),
    /// Another answer.
    Answer {
        /// Its status.
        status: u16,
        /// What it calls its server.
        server: Option<String>,
        /// The beginning of its body, as one line that can be shown.
        said: String,
    },
    /// A redirect that a CA does not follow.
    Astray {
        /// To where.
        location: String,
        /// Why not.
        why: String,
    },
    /// More redirects than a CA follows.
    TooFar,
    /// A redirect to a name that has no address.
    Nowhere,
}

/// A redirect that was followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    /// To where.
    pub to: String,
    /// The names of the certificate that was shown there, where the name asked for is none of them.
    pub shown: Option<Vec<String>>,
}

/// The way from one address of the name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trail {
    /// The address.
    pub address: IpAddr,
    /// The redirects on the way.
    pub hops: Vec<Hop>,
    /// Its end.
    pub met: Met,
}

/// The same question put through our own name, to tell their fault from ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Control {
    /// Our name.
    pub name: String,
    /// What it met; empty when the name has no address.
    pub trails: Vec<Trail>,
}

impl Control {
    /// Whether our edges answer by our own name.
    pub fn answers(&self) -> bool {
        let mut tried = self.trails.iter().filter(|t| t.met != Met::NoRoute).peekable();
        tried.peek().is_some() && tried.all(|t| t.met == Met::Edge)
    }
}

/// What a preflight means. `ours` are the addresses that are ours by configuration; `control` is there whenever some way did
/// not end at an edge.
pub fn judge(host: &Hostname, trails: &[Trail], control: Option<&Control>, ours: &[IpAddr]) -> Finding {
    let tried: Vec<&Trail> = trails.iter().filter(|t| t.met != Met::NoRoute).collect();
    let strayed: Vec<&Trail> = tried.iter().copied().filter(|t| t.met != Met::Edge).collect();
    let is_ours =
        |t: &&Trail| ours.contains(&t.address) || control.is_some_and(|c| c.trails.iter().any(|o| o.address == t.address));
    let theirs: Vec<&Trail> = strayed.iter().copied().filter(|t| !is_ours(t)).collect();
    let (reason, at) = match (tried.first(), strayed.first()) {
        _ if trails.is_empty() => (Reason::PreflightNoAddress, None),
        (None, _) => (Reason::PreflightOwnOutage, None),
        (Some(_), None) => (Reason::PreflightOk, None),
        // Only our own name tells whether we could be reached at all.
        (_, at) if !control.is_some_and(Control::answers) => (Reason::PreflightOwnOutage, at.copied()),
        (_, at) => match theirs.first() {
            None => (Reason::PreflightOwnOutage, at.copied()),
            Some(at) => (blame(&tried, at), Some(*at)),
        },
    };
    words::finding(host, reason, at, trails, control)
}

/// What is wrong at an address that is not ours.
fn blame(tried: &[&Trail], at: &Trail) -> Reason {
    let right = |v6: bool| tried.iter().filter(|t| t.address.is_ipv6() == v6).all(|t| t.met == Met::Edge);
    let some = tried.iter().any(|t| t.met == Met::Edge);
    let both = tried.iter().any(|t| t.address.is_ipv4()) && tried.iter().any(|t| t.address.is_ipv6());
    match &at.met {
        _ if some && both && right(false) => Reason::PreflightIpv6Elsewhere,
        _ if some => Reason::PreflightMixed,
        Met::Astray { .. } | Met::TooFar | Met::Nowhere => Reason::PreflightRedirected,
        _ if !at.hops.is_empty() => Reason::PreflightRedirected,
        Met::Answer { .. } | Met::NotHttp(_) => Reason::PreflightAnsweredByAnother,
        _ => Reason::PreflightUnreachable,
    }
}

/// The finding where the operator switched preflights off.
pub fn switched_off(host: &Hostname) -> Finding {
    words::finding(host, Reason::PreflightOff, None, &[], None)
}

/// The finding where our own side could not even ask.
pub fn not_asked(host: &Hostname, why: &str) -> Finding {
    Finding { observed: vec![why.to_owned()], ..words::finding(host, Reason::PreflightOwnOutage, None, &[], None) }
}

/// The routing finding of a name behind a proxy, by what requests through that proxy met: `proxied_by_cdn` is what DNS alone
/// says. `before` is what was known until now; an outage of ours leaves that as it is.
pub fn behind_proxy(routing: Finding, met: &Finding, before: Option<Reason>) -> Finding {
    debug_assert!(routing.check == Check::Routing && met.check == Check::Preflight);
    let mut finding = routing;
    let reached = match met.reason {
        Reason::PreflightOk => true,
        Reason::PreflightOwnOutage => before == Some(Reason::ProxiedReachable),
        _ => false,
    };
    finding.observed.extend(met.observed.iter().map(|line| format!("a request: {line}")));
    finding.seen_by.extend(met.seen_by.iter().cloned());
    if reached {
        finding.reason = Reason::ProxiedReachable;
        finding.advice = words::proxied(&finding);
    } else if met.reason != Reason::PreflightOwnOutage {
        finding.advice = format!("{} We tried a request through the proxy: {}", finding.advice, met.advice);
    }
    finding
}

#[cfg(test)]
mod tests;
