//! What one look saw: every answer with who gave it.

use std::net::IpAddr;
use std::time::Duration;

use super::extended_error;
use super::record::{Data, Kind, Rr, Soa};

/// How many aliases of one answer are followed: more than any resolver does, and few enough that an answer made of nothing else
/// costs no time.
const MAX_ALIASES: usize = 24;

/// How many extended errors of one answer are told.
const MAX_EXTENDED: usize = 4;

/// Who was asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Observer {
    /// One of our own recursive resolvers, by its label.
    Resolver(String),
    /// The same, told to answer without checking signatures (the CD bit, RFC 4035 §3.2.2): what fails only with the check is bogus.
    Unchecked(String),
    /// An authoritative server.
    Server {
        /// Its name: `ns1.example.com`.
        host: String,
        /// Where it was asked.
        address: IpAddr,
    },
}

impl Observer {
    /// Its name for people.
    pub fn label(&self) -> String {
        match self {
            Observer::Resolver(label) => format!("resolver {label}"),
            Observer::Unchecked(label) => format!("resolver {label} without checking signatures"),
            Observer::Server { host, .. } => host.clone(),
        }
    }
}

/// How an exchange ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// An answer without error; it may be empty.
    NoError,
    /// The name does not exist (the last one of an alias chain, RFC 2308 §2.1).
    NxDomain,
    /// Server failure.
    ServFail,
    /// The server will not answer this.
    Refused,
    /// The server does not know this kind of question.
    NotImp,
    /// Another response code.
    Other(u16),
    /// Nothing came, by UDP and TCP.
    Timeout,
    /// The answer was cut and did not come whole over TCP either.
    Truncated,
    /// Something came that is no answer to this question.
    Unusable(String),
}

/// One answer, or what stood in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// How it ended.
    pub outcome: Outcome,
    /// Given with authority (AA).
    pub authoritative: bool,
    /// Validated by the resolver (AD).
    pub validated: bool,
    /// Extended errors (RFC 8914), by number.
    pub ede: Vec<u16>,
    /// The answer section.
    pub records: Vec<Rr>,
    /// The authority section.
    pub authority: Vec<Rr>,
    /// The additional section.
    pub additional: Vec<Rr>,
    /// Octets received.
    pub size: usize,
}

impl Answer {
    /// An answer without content.
    pub fn bare(outcome: Outcome) -> Self {
        Answer {
            outcome,
            authoritative: false,
            validated: false,
            ede: Vec::new(),
            records: Vec::new(),
            authority: Vec::new(),
            additional: Vec::new(),
            size: 0,
        }
    }

    /// Whether it says what is, or positively what is not.
    pub fn definite(&self) -> bool {
        matches!(self.outcome, Outcome::NoError | Outcome::NxDomain)
    }

    /// Whether it says itself that it failed DNSSEC validation. A resolver may add such a code to an answer that it gives all the
    /// same; that one is no failure.
    pub fn bogus(&self) -> bool {
        self.outcome == Outcome::ServFail && self.ede.iter().any(|code| extended_error::is_bogus(*code))
    }

    /// The aliases from `name` on, in order, as far as this answer shows them: every target once, and not more than anybody follows.
    pub fn aliases(&self, name: &str) -> Vec<String> {
        let mut chain: Vec<String> = Vec::new();
        let mut at = name.to_owned();
        while let Some(next) = self.records.iter().find_map(|rr| match &rr.data {
            Data::Cname(to) if rr.name == at => Some(to.clone()),
            _ => None,
        }) {
            let seen_before = next == name || chain.contains(&next);
            chain.push(next.clone());
            if seen_before || chain.len() >= MAX_ALIASES {
                break;
            }
            at = next;
        }
        chain
    }

    /// The records of one type at one name.
    pub fn at<'a>(&'a self, name: &'a str, kind: Kind) -> impl Iterator<Item = &'a Data> {
        self.records.iter().filter(move |rr| rr.name == name && rr.data.kind() == kind).map(|rr| &rr.data)
    }

    /// The addresses in the answer, wherever the chain ended.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.records.iter().filter_map(|rr| match rr.data {
            Data::A(a) => Some(IpAddr::V4(a)),
            Data::Aaaa(a) => Some(IpAddr::V6(a)),
            _ => None,
        })
    }

    /// The SOA of a negative answer, with its owner and TTL.
    pub fn soa(&self) -> Option<(&str, u32, &Soa)> {
        self.authority.iter().find_map(|rr| match &rr.data {
            Data::Soa(s) => Some((rr.name.as_str(), rr.ttl, s)),
            _ => None,
        })
    }

    /// How long a resolver may keep this negative answer, in seconds (RFC 2308 §5).
    pub fn negative_ttl(&self) -> Option<u32> {
        self.soa().map(|(_, ttl, soa)| ttl.min(soa.minimum))
    }

    /// For how many seconds what it says of `name` may be kept: the TTL of what stands there, or that of its absence.
    pub fn kept_for(&self, name: &str) -> Option<u32> {
        if !self.definite() {
            return None;
        }
        let there = self.records.iter().filter(|rr| rr.name == name).map(|rr| rr.ttl).max();
        // A TTL with the highest bit set counts as none at all (RFC 2181 §8).
        there.or_else(|| self.negative_ttl()).map(|ttl| if i32::try_from(ttl).is_ok() { ttl } else { 0 })
    }

    /// How it ended, for people.
    pub fn how(&self) -> String {
        let base = match &self.outcome {
            Outcome::NoError if self.records.is_empty() => "no such record".to_owned(),
            Outcome::NoError => "an answer".to_owned(),
            Outcome::NxDomain => "no such name (NXDOMAIN)".to_owned(),
            Outcome::ServFail => "server failure (SERVFAIL)".to_owned(),
            Outcome::Refused => "refused (REFUSED)".to_owned(),
            Outcome::NotImp => "not implemented (NOTIMP)".to_owned(),
            Outcome::Other(n) => format!("response code {n}"),
            Outcome::Timeout => "no answer in time".to_owned(),
            Outcome::Truncated => "an answer cut short, and nothing over TCP".to_owned(),
            Outcome::Unusable(why) => format!("an unusable answer ({why})"),
        };
        match self.ede.as_slice() {
            [] => base,
            codes => {
                let mut said: Vec<String> = Vec::new();
                // Code 0 says nothing more.
                for code in codes.iter().filter(|c| **c != 0).take(MAX_EXTENDED) {
                    let one = extended_error::meaning(*code).map_or_else(|| format!("extended error {code}"), str::to_owned);
                    if !said.contains(&one) {
                        said.push(one);
                    }
                }
                if said.is_empty() { base } else { format!("{base}: {}", said.join(", ")) }
            }
        }
    }
}

/// One question to one observer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Probe {
    /// Who is asked.
    pub observer: Observer,
    /// For which name.
    pub name: String,
    /// For which type.
    pub kind: Kind,
}

/// A probe and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// The question.
    pub probe: Probe,
    /// The answer.
    pub answer: Answer,
}

/// All that one look saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Labels of the recursive resolvers that decide, in order of preference.
    pub resolvers: Vec<String>,
    /// The answers, in the order they came.
    pub observations: Vec<Observation>,
    /// Why the look ended before every question was answered, if it did.
    pub cut_short: Option<String>,
    /// There was no room for this look now: nothing here is to be read, and it may be asked for again after this time.
    pub put_off: Option<Duration>,
}

impl Seen {
    /// Whether a resolver has shown in this look that it validates: it vouches for an answer (AD), or rejects one as bogus.
    pub fn validates(&self, resolver: &str) -> bool {
        self.observations.iter().any(|o| {
            matches!(&o.probe.observer, Observer::Resolver(r) if r == resolver) && (o.answer.validated || o.answer.bogus())
        })
    }

    /// The answer to a probe.
    pub fn answer(&self, observer: &Observer, name: &str, kind: Kind) -> Option<&Answer> {
        self.observations
            .iter()
            .find(|o| o.probe.kind == kind && o.probe.name == name && o.probe.observer == *observer)
            .map(|o| &o.answer)
    }
}
