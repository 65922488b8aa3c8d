//! The corpus of DNS situations as data: reads a file of cases, says what each asks, and loads its zones.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use nameplate::dns::world::line;
use nameplate::model::hostname::Hostname;
use nameplate::model::look::{Ask, CaaAsk, Data, DelegationAsk, Kind, OwnershipAsk, Platform, RoutingAsk, Rr, name};
use nameplate::sandbox::dns::{Fault, How, View, Who, ZoneStore};
use serde::Deserialize;

/// The corpus that was handed to us.
pub const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/dns-cases.toml");
/// Our own.
pub const MORE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/dns-more.toml");

/// Reads a file of cases.
pub fn read(file: &str) -> Corpus {
    let text = std::fs::read_to_string(file).unwrap_or_else(|e| panic!("{file}: {e}"));
    let corpus: Corpus = toml::from_str(&text).unwrap_or_else(|e| panic!("{file}: {e}"));
    assert_eq!(corpus.schema, "dns-onboarding-cases/1", "{file} has another schema");
    assert!(!corpus.case.is_empty(), "{file} has no cases");
    corpus
}

#[derive(Deserialize)]
pub struct Corpus {
    schema: String,
    pub defaults: Defaults,
    pub case: Vec<Case>,
}

#[derive(Deserialize)]
pub struct Defaults {
    registered_domain: String,
    platform_targets: Vec<String>,
    platform_addresses: Vec<IpAddr>,
    platform_suffixes: Vec<String>,
    platform_zone: Vec<String>,
    txt_label: String,
    txt_prefix: String,
    account_uri: String,
    max_cname_chain: usize,
    caa_max_age_s: u64,
}

#[derive(Deserialize)]
pub struct Case {
    pub id: String,
    pub area: String,
    check: Option<String>,
    hostname: String,
    hostname_ascii: Option<String>,
    registered_domain: Option<String>,
    #[serde(default)]
    wildcard: bool,
    zone: Vec<String>,
    #[serde(default)]
    pub fail: Vec<Failing>,
    #[serde(default)]
    pub view: Vec<Seeing>,
    #[serde(default)]
    state: BTreeMap<String, toml::Value>,
    targets: Vec<String>,
    #[serde(default)]
    foreign_targets: Vec<String>,
    txt_name: Option<String>,
    txt_value: Option<String>,
    #[serde(default)]
    superseded_values: Vec<String>,
    #[serde(default)]
    retired_addresses: Vec<IpAddr>,
    #[serde(default)]
    cdn_prefixes: Vec<String>,
    #[serde(default)]
    extra_names: Vec<String>,
    issuer: Vec<String>,
    account_uri: Option<String>,
    challenge: String,
    delegation_target: Option<String>,
    #[serde(default)]
    acme_txt: Vec<String>,
    pub verdict: String,
    pub code: String,
    pub found_at: Option<String>,
    pub found_via: Option<String>,
    pub le_result: Option<String>,
}

#[derive(Deserialize)]
pub struct Failing {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    how: String,
    #[serde(default)]
    below: bool,
}

#[derive(Deserialize)]
pub struct Seeing {
    who: String,
    zone: Vec<String>,
    #[serde(default)]
    fail: Vec<Failing>,
}

impl Seeing {
    fn auth(&self) -> Option<String> {
        self.who.strip_prefix("auth:").map(name::canonical)
    }

    fn undelegated(&self) -> Option<String> {
        self.who.strip_prefix("undelegated:").map(name::canonical)
    }
}

impl Case {
    fn seconds(&self, key: &str) -> Option<Duration> {
        let seconds = self.state.get(key)?.as_integer().expect("a state in seconds is a whole number");
        Some(Duration::from_secs(seconds.try_into().expect("a length of time is not negative")))
    }

    fn hostname(&self) -> String {
        name::canonical(self.hostname_ascii.as_ref().unwrap_or(&self.hostname))
    }

    fn registered_domain(&self, defaults: &Defaults) -> String {
        name::canonical(self.registered_domain.as_ref().unwrap_or(&defaults.registered_domain))
    }

    /// What the case asks the product.
    pub fn ask(&self, defaults: &Defaults) -> Ask {
        let platform = Platform {
            suffixes: defaults.platform_suffixes.clone(),
            addresses: defaults.platform_addresses.clone(),
            retired_addresses: self.retired_addresses.clone(),
            cdn_prefixes: self.cdn_prefixes.clone(),
            control_names: defaults.platform_targets.clone(),
        };
        let hostname = self.hostname();
        let mut ask = Ask::new(Hostname::trusted(&hostname), platform);
        ask.registered_domain = self.registered_domain(defaults);
        let check = || self.check.as_deref().expect("a case of area failure names its check");
        let area = if self.area == "failure" { check() } else { &self.area };
        match area {
            "txt" => {
                let label_there = || format!("{}.{hostname}", defaults.txt_label);
                ask.ownership = Some(OwnershipAsk {
                    name: self.txt_name.clone().unwrap_or_else(label_there),
                    value: self.txt_value.clone().expect("a txt case names its value"),
                    prefix: defaults.txt_prefix.clone(),
                    superseded: self.superseded_values.clone(),
                    age: self.seconds("token_age_s"),
                    max_age: self.seconds("token_max_age_s").unwrap_or_default(),
                    other_servers: self.view.iter().filter_map(Seeing::undelegated).collect(),
                });
            }
            "cname" | "apex" => {
                ask.routing = Some(RoutingAsk {
                    accepted_targets: self.targets.clone(),
                    target_for_record: self.targets.first().cloned().unwrap_or_default(),
                    foreign_targets: self.foreign_targets.clone(),
                    tenant_zone: None,
                    was_live: self.state.get("previously_active").and_then(toml::Value::as_bool).unwrap_or(false),
                    max_chain: defaults.max_cname_chain,
                });
            }
            "caa" => {
                ask.caa = Some(CaaAsk {
                    issuers: self.issuer.clone(),
                    account_uri: Some(self.account_uri.as_ref().unwrap_or(&defaults.account_uri).clone()),
                    method: self.challenge.clone(),
                    wildcard: self.wildcard,
                    extra_names: self.extra_names.clone(),
                    age: self.seconds("caa_checked_age_s").unwrap_or_default(),
                    max_age: self.seconds("caa_max_age_s").unwrap_or(Duration::from_secs(defaults.caa_max_age_s)),
                });
            }
            "challenge-delegation" => {
                ask.delegation = Some(DelegationAsk {
                    name: format!("_acme-challenge.{hostname}"),
                    target: self.delegation_target.clone().expect("a case of delegation names its target"),
                    foreign_targets: self.foreign_targets.clone(),
                    values: self.acme_txt.clone(),
                    method: self.challenge.clone(),
                    wildcard: self.wildcard,
                });
            }
            other => panic!("{}: no check covers the area {other:?}", self.id),
        }
        ask
    }
}

fn faults(all: &[Failing]) -> Vec<Fault> {
    let fault = |f: &Failing| Fault {
        name: name::canonical(&f.name),
        kind: (f.kind != "*").then(|| Kind::named(&f.kind).expect("a type this server knows")),
        how: How::named(&f.how).expect("a word of [how]"),
        below: f.below,
    };
    all.iter().map(fault).collect()
}

fn parse(line: &str) -> Rr {
    line::parse(line).unwrap_or_else(|e| panic!("{line}: {e}"))
}

/// The name servers and zones that the loader adds around a case's own lines.
struct Loader {
    /// Zones, with the servers written for them where the case writes none.
    zones: BTreeMap<String, Vec<String>>,
    /// Addresses of servers that no line gives.
    addresses: Vec<Rr>,
    /// All servers with a place to run.
    servers: Vec<(String, IpAddr)>,
}

const HOSTING: &str = "ns1.hosting-of-the-loader.test";
const REGISTRY: &str = "ns1.registry-of-the-loader.test";

impl Loader {
    fn new(case: &Case, defaults: &Defaults, own: &[Rr]) -> Self {
        let domain = case.registered_domain(defaults);
        let mut zones: BTreeSet<String> = defaults.platform_suffixes.iter().map(|s| name::canonical(s)).collect();
        zones.insert(domain.clone());
        zones.extend(case.delegation_target.iter().filter_map(|t| name::parent(&name::canonical(t)).map(str::to_owned)));
        zones.extend(own.iter().filter(|rr| rr.data.kind() == Kind::Soa).map(|rr| rr.name.clone()));
        // Names that lie elsewhere belong to their own registered domain.
        for rr in own {
            if !zones.iter().any(|z| name::within(&rr.name, z)) {
                zones.insert(Hostname::trusted(&rr.name).registered_domain().to_owned());
            }
        }
        let named = |host: &str| own.iter().any(|rr| rr.data == Data::Ns(host.to_owned()));
        let auth: Vec<String> = case.view.iter().filter_map(Seeing::auth).filter(|h| !named(h)).collect();
        let holder = |host: &String| {
            let above = zones.iter().filter(|z| name::within(host, z) && **z != domain).max_by_key(|z| z.len());
            above.cloned().unwrap_or_else(|| domain.clone())
        };
        let mut with_servers: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for zone in &zones {
            let mut hosts: Vec<String> = auth.iter().filter(|h| holder(h) == *zone).cloned().collect();
            if hosts.is_empty() {
                hosts.push(HOSTING.to_owned());
            }
            with_servers.insert(zone.clone(), hosts);
        }
        let tops: BTreeSet<String> = zones.iter().filter_map(|z| name::climb(z).last()).map(str::to_owned).collect();
        for top in tops.into_iter().chain(["test".to_owned()]) {
            with_servers.entry(top).or_insert_with(|| vec![REGISTRY.to_owned()]);
        }
        let mut loader = Loader { zones: with_servers, addresses: Vec::new(), servers: Vec::new() };
        loader.place(case, own);
        loader
    }

    /// Gives every server an address, its own where a line has one.
    fn place(&mut self, case: &Case, own: &[Rr]) {
        let mut hosts: BTreeSet<String> = self.zones.values().flatten().cloned().collect();
        hosts.extend(own.iter().filter_map(|rr| if let Data::Ns(h) = &rr.data { Some(h.clone()) } else { None }));
        hosts.extend(case.view.iter().filter_map(Seeing::undelegated));
        for (i, host) in hosts.into_iter().enumerate() {
            let written = own.iter().find_map(|rr| match rr.data {
                Data::A(a) if rr.name == host => Some(IpAddr::V4(a)),
                Data::Aaaa(a) if rr.name == host => Some(IpAddr::V6(a)),
                _ => None,
            });
            let address = written.unwrap_or_else(|| {
                let made = std::net::Ipv4Addr::new(192, 0, 2, 100 + u8::try_from(i).expect("few servers"));
                self.addresses.push(Rr { name: host.clone(), ttl: 3600, data: Data::A(made) });
                IpAddr::V4(made)
            });
            self.servers.push((host, address));
        }
    }

    /// A view: its own lines, and around them what makes them zones.
    fn view(&self, lines: &[Rr], failing: &[Failing], sole_server: Option<(&str, &str)>) -> View {
        let mut view = View::of(lines.iter().chain(&self.addresses).cloned(), faults(failing));
        for (zone, hosts) in &self.zones {
            let soa = format!("{zone}. 300 IN SOA {HOSTING}. hostmaster.{HOSTING}. 1 7200 900 1209600 300");
            if view.at(zone, Kind::Soa).next().is_none() {
                view.add(parse(&soa));
            }
            let hosts = match sole_server {
                Some((host, at)) if at == zone => vec![host.to_owned()],
                _ => hosts.clone(),
            };
            if view.at(zone, Kind::Ns).next().is_none() {
                for host in hosts {
                    view.add(parse(&format!("{zone}. 3600 IN NS {host}.")));
                }
            }
        }
        view
    }
}

/// The world of a case, and its servers: name and address.
pub fn load(case: &Case, defaults: &Defaults) -> (ZoneStore, Vec<(String, IpAddr)>) {
    let platform: Vec<Rr> = defaults.platform_zone.iter().map(|l| parse(l)).collect();
    let read = |lines: &[String]| lines.iter().map(|l| parse(l)).chain(platform.clone()).collect::<Vec<Rr>>();
    let everyone = read(&case.zone);
    // Zones and servers may be written in a view only.
    let mut all = everyone.clone();
    all.extend(case.view.iter().filter(|v| v.undelegated().is_none()).flat_map(|v| read(&v.zone)));
    let mut loader = Loader::new(case, defaults, &everyone);
    let everything = Loader::new(case, defaults, &all);
    loader.addresses.clone_from(&everything.addresses);
    let world = ZoneStore::new();
    world.set_everyone(loader.view(&everyone, &case.fail, None));
    for (host, zone) in delegated_and_empty(case, &everyone, &everything.servers) {
        let lines: Vec<Rr> = everyone.iter().filter(|rr| rr.name == zone && rr.data.kind() == Kind::Ns).cloned().collect();
        let soa = parse(&format!("{zone}. 300 IN SOA {host}. hostmaster.{host}. 1 7200 900 1209600 300"));
        world.set_view(Who::Server(host), Some(View::of(lines.into_iter().chain([soa]), faults(&case.fail))));
    }
    let domain = case.registered_domain(defaults);
    for seeing in &case.view {
        let lines = read(&seeing.zone);
        let (who, sole) = if let Some(host) = seeing.auth() {
            (Who::Server(host), None)
        } else if let Some(host) = seeing.undelegated() {
            (Who::Server(host.clone()), Some(host))
        } else {
            let label = seeing.who.strip_prefix("resolver:").expect("auth:, undelegated: or resolver:");
            (Who::Resolver(label.to_owned()), None)
        };
        let sole = sole.as_deref().map(|host| (host, domain.as_str()));
        world.set_view(who, Some(loader.view(&lines, &seeing.fail, sole)));
    }
    (world, everything.servers)
}

/// Servers of a delegation for which the case says nothing: they serve the zone, and nothing in it.
fn delegated_and_empty(case: &Case, own: &[Rr], servers: &[(String, IpAddr)]) -> Vec<(String, String)> {
    let is_zone = |n: &str| own.iter().any(|rr| rr.name == n && rr.data.kind() == Kind::Soa);
    let has_view = |host: &str| case.view.iter().any(|v| v.auth().is_some_and(|h| h == host));
    own.iter()
        .filter_map(|rr| if let Data::Ns(host) = &rr.data { Some((host.clone(), rr.name.clone())) } else { None })
        .filter(|(host, zone)| !is_zone(zone) && !has_view(host) && servers.iter().any(|(h, _)| h == host))
        .collect()
}
