//! What a look is to find out, with everything the judges compare against.

use std::net::IpAddr;
use std::time::Duration;

use super::Turn;
use crate::model::hostname::Hostname;

/// How many vantage points are asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Depth {
    /// One validating resolver, and the next where that one is down: the daily recheck.
    Routine,
    /// Every resolver: something changed, or an order is about to be placed.
    #[default]
    Full,
}

/// What we hand out, and what is ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Platform {
    /// Our own zones. An answer that comes from inside them proves nothing about the tenant.
    pub suffixes: Vec<String>,
    /// The addresses a name may have to reach us: those of our target now, plus the configured ones.
    pub addresses: Vec<IpAddr>,
    /// Addresses we used once and use no longer.
    pub retired_addresses: Vec<IpAddr>,
    /// Address ranges of known proxies, as `198.51.100.80/29`.
    pub cdn_prefixes: Vec<String>,
    /// Names that always resolve: when they fail too, it is our resolvers that are down.
    pub control_names: Vec<String>,
}

/// The ownership proof of one attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnershipAsk {
    /// Where the TXT record is expected: `_nameplate-challenge.shop.example.com`.
    pub name: String,
    /// The one value that counts now.
    pub value: String,
    /// What every value of ours begins with: `nameplate-verify=`.
    pub prefix: String,
    /// Values of earlier attempts of this claim. Never accepted.
    pub superseded: Vec<String>,
    /// Age of the value; none once the attempt has succeeded (its deadline then stops).
    pub age: Option<Duration>,
    /// How old the value may become.
    pub max_age: Duration,
    /// Name servers that are not delegated to, where the records may have been put by mistake.
    pub other_servers: Vec<String>,
}

/// Where traffic should go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoutingAsk {
    /// The names a CNAME may lead to.
    pub accepted_targets: Vec<String>,
    /// The one of them to show in the record to publish.
    pub target_for_record: String,
    /// Targets known to belong to others.
    pub foreign_targets: Vec<String>,
    /// The zone under which every tenant has its own target: any other name beneath it belongs to somebody else.
    pub tenant_zone: Option<String>,
    /// Whether the hostname was served before.
    pub was_live: bool,
    /// How many aliases may lie between hostname and target.
    pub max_chain: usize,
}

/// What the order's CA must be allowed to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaaAsk {
    /// All names by which the CA knows itself in CAA (`caaIdentities`).
    pub issuers: Vec<String>,
    /// Our account at that CA; none while there is none.
    pub account_uri: Option<String>,
    /// The validation method: `http-01`, `dns-01`, `tls-alpn-01`.
    pub method: String,
    /// The order is for `*.` and the hostname.
    pub wildcard: bool,
    /// Other names of the same order.
    pub extra_names: Vec<String>,
    /// How old the observation to be judged is; zero right after a look.
    pub age: Duration,
    /// How old it may be to order on it.
    pub max_age: Duration,
}

/// The delegation of the challenge name, and the method it is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DelegationAsk {
    /// The challenge name: `_acme-challenge.shop.example.com`.
    pub name: String,
    /// This tenant's own validation name, where the challenge name has to lead.
    pub target: String,
    /// Validation names known to belong to others; all others beneath the target's zone do as well.
    pub foreign_targets: Vec<String>,
    /// The values that a running order needs to be served; none at rest.
    pub values: Vec<String>,
    /// The validation method of the order: `http-01`, `dns-01`, `tls-alpn-01`.
    pub method: String,
    /// The order is for `*.` and the hostname.
    pub wildcard: bool,
}

/// One look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The name.
    pub hostname: Hostname,
    /// Its registered domain.
    pub registered_domain: String,
    /// How many vantage points.
    pub depth: Depth,
    /// Its place among the other looks.
    pub turn: Turn,
    /// What is ours.
    pub platform: Platform,
    /// Ask for the ownership proof.
    pub ownership: Option<OwnershipAsk>,
    /// Ask where traffic goes.
    pub routing: Option<RoutingAsk>,
    /// Ask whether the CA may issue.
    pub caa: Option<CaaAsk>,
    /// Ask whether the challenge name leads to us. Only where the platform serves a validation zone, which no setting names yet:
    /// until then no look of ours asks it, and HTTP-01 needs none.
    pub delegation: Option<DelegationAsk>,
    /// Ask what a name's TXT records say, beside the checks: nobody judges them.
    pub text: Option<String>,
    /// Ask which zone a name lies in, beside the checks.
    pub zone_of: Option<String>,
}

impl Ask {
    /// A look that asks nothing yet.
    pub fn new(hostname: Hostname, platform: Platform) -> Self {
        let registered_domain = hostname.registered_domain().to_owned();
        Ask {
            hostname,
            registered_domain,
            depth: Depth::Full,
            turn: Turn::default(),
            platform,
            ownership: None,
            routing: None,
            caa: None,
            delegation: None,
            text: None,
            zone_of: None,
        }
    }
}
