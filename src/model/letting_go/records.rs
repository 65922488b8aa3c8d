//! By which records a name that was let go of leads here: what its former tenant is to delete, as it was really seen.

use std::collections::BTreeSet;
use std::net::IpAddr;

use crate::model::look::{Data, Kind, Platform, Seen};

/// So many are named; more than a handful at one name is no address of ours.
const NAMED: usize = 8;

/// A record at the name itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Left {
    /// `CNAME`, `A`, `AAAA`.
    pub kind: Kind,
    /// Where it leads.
    pub value: String,
}

/// The records at `hostname` by which it leads to us: its alias, else those of its addresses that are ours, else (behind a proxy) all of
/// them.
pub fn leading_here(hostname: &str, ours: &Platform, seen: &Seen) -> Vec<Left> {
    let answers = seen.observations.iter().filter(|o| o.probe.name == hostname).map(|o| &o.answer);
    let records = answers.flat_map(|answer| &answer.records).filter(|rr| rr.name == hostname);
    let (mut aliases, mut own, mut others) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for rr in records {
        let kind = rr.data.kind();
        let address = match &rr.data {
            Data::Cname(to) => {
                aliases.insert(Left { kind, value: to.clone() });
                continue;
            }
            Data::A(at) => IpAddr::V4(*at),
            Data::Aaaa(at) => IpAddr::V6(*at),
            _ => continue,
        };
        let is_ours = ours.addresses.contains(&address) || ours.retired_addresses.contains(&address);
        let set = if is_ours { &mut own } else { &mut others };
        set.insert(Left { kind, value: address.to_string() });
    }
    let leading = [aliases, own, others].into_iter().find(|set| !set.is_empty()).unwrap_or_default();
    leading.into_iter().take(NAMED).collect()
}

/// What is to be deleted, as a phrase; `target` is what its tenant was told to point it at, where no record of its own was seen.
pub fn in_words(hostname: &str, left: &[Left], target: &str) -> String {
    let record = |one: &Left| match one.kind {
        Kind::Cname => format!("the CNAME record of {hostname} that leads to {}", one.value),
        kind => format!("the {kind} record of {hostname} with {}", one.value),
    };
    match left {
        [] => format!("the record of {hostname} that leads to {target}"),
        all => all.iter().map(record).collect::<Vec<_>>().join(" and "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::look::{Answer, Observation, Observer, Outcome, Probe, Rr};

    const NAME: &str = "acme.test";

    fn seen(kind: Kind, data: Vec<(&str, Data)>) -> Seen {
        let records = data.into_iter().map(|(name, data)| Rr { name: name.to_owned(), ttl: 60, data }).collect();
        let probe = Probe { observer: Observer::Resolver("one".to_owned()), name: NAME.to_owned(), kind };
        let answer = Answer { records, ..Answer::bare(Outcome::NoError) };
        Seen { observations: vec![Observation { probe, answer }], ..Seen::default() }
    }

    fn ours() -> Platform {
        Platform {
            addresses: vec!["192.0.2.80".parse().unwrap()],
            retired_addresses: vec!["2001:db8::80".parse().unwrap()],
            ..Platform::default()
        }
    }

    fn said(seen: &Seen) -> String {
        in_words(NAME, &leading_here(NAME, &ours(), seen), "acme.app.example")
    }

    #[test]
    fn the_record_that_was_seen_is_named() {
        let a = |text: &str| (NAME, Data::A(text.parse().unwrap()));
        let alias = seen(
            Kind::A,
            vec![
                (NAME, Data::Cname("acme.app.example".to_owned())),
                ("acme.app.example", Data::A("192.0.2.80".parse().unwrap())),
            ],
        );
        assert_eq!(said(&alias), "the CNAME record of acme.test that leads to acme.app.example");
        let mut apex = seen(Kind::A, vec![a("192.0.2.80"), a("198.51.100.1"), a("192.0.2.80")]);
        assert_eq!(said(&apex), "the A record of acme.test with 192.0.2.80");
        let six = seen(Kind::Aaaa, vec![(NAME, Data::Aaaa("2001:db8::80".parse().unwrap()))]);
        apex.observations.extend(six.observations);
        assert_eq!(
            said(&apex),
            "the A record of acme.test with 192.0.2.80 and the AAAA record of acme.test with 2001:db8::80"
        );
        let proxied = seen(Kind::A, vec![a("198.51.100.80")]);
        assert_eq!(said(&proxied), "the A record of acme.test with 198.51.100.80");
        assert_eq!(said(&Seen::default()), "the record of acme.test that leads to acme.app.example");
    }

    #[test]
    fn however_many_records_there_are_a_few_are_named() {
        let many = (0..=255).map(|n| (NAME, Data::A([198, 51, 100, n].into()))).collect();
        assert_eq!(leading_here(NAME, &ours(), &seen(Kind::A, many)).len(), NAMED);
    }
}
