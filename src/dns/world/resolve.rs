//! Answers: as an authoritative server that knows its own zones only, and as a resolver that sees the whole world.

use crate::model::look::{Answer, Data, Kind, Outcome, Rr, name};

use super::fault::How;
use super::store::{Reply, Who, World};
use super::view::{Step, View};

/// How many aliases a resolver follows before it gives up.
const MAX_ALIASES: usize = 16;

/// Extended error: no server of the zone can be reached (RFC 8914 §4.23).
const NO_REACHABLE_AUTHORITY: u16 = 22;
/// Extended error: the answer fails validation (RFC 8914 §4.7).
const DNSSEC_BOGUS: u16 = 6;

fn bare(outcome: Outcome) -> Reply {
    Reply::Answer(Answer::bare(outcome))
}

fn failed(ede: u16) -> Reply {
    Reply::Answer(Answer { ede: vec![ede], ..Answer::bare(Outcome::ServFail) })
}

/// The negative answer of the zone at `apex`.
fn negative(view: &View, apex: Option<&str>, outcome: Outcome, records: Vec<Rr>) -> Answer {
    let authority = apex.into_iter().flat_map(|a| view.at(a, Kind::Soa).cloned()).collect();
    Answer { records, authority, ..Answer::bare(outcome) }
}

/// What an authoritative server answers.
pub(super) fn as_server(view: &View, host: &str, asked: &str, kind: Kind) -> Reply {
    let serves = |apex: &str| view.has(apex, Kind::Soa) && view.is_server_of(host, apex);
    let Some(apex) = name::climb(asked).find(|n| serves(n)) else { return bare(Outcome::Refused) };
    let fault = view.fault(asked, kind).map(|f| f.how);
    if fault == Some(How::NxDomain) {
        let answer = negative(view, Some(apex), Outcome::NxDomain, Vec::new());
        return Reply::Answer(Answer { authoritative: true, ..answer });
    }
    if let Some(cut) = view.cut(asked, apex, serves) {
        let authority: Vec<Rr> = view.at(cut, Kind::Ns).cloned().collect();
        let additional =
            view.servers(cut).flat_map(|h| view.at(h, Kind::A).chain(view.at(h, Kind::Aaaa)).cloned()).collect();
        return Reply::Answer(Answer { authority, additional, ..Answer::bare(Outcome::NoError) });
    }
    match fault {
        Some(How::ServFail) => return bare(Outcome::ServFail),
        Some(How::Timeout) => return Reply::Silence,
        Some(How::Refused) => return bare(Outcome::Refused),
        Some(How::NotImp) => return bare(Outcome::NotImp),
        Some(How::Truncated) => return Reply::Truncated,
        Some(How::Bogus | How::BogusUnexplained | How::NxDomain) | None => {}
    }
    Reply::Answer(inside(view, apex, asked, kind, &serves))
}

/// The authoritative answer from inside one zone; aliases are followed as long as they stay there.
fn inside(view: &View, apex: &str, asked: &str, kind: Kind, serves: &dyn Fn(&str) -> bool) -> Answer {
    let mut records = Vec::new();
    let mut at = asked.to_owned();
    let with = |answer: Answer| Answer { authoritative: true, ..answer };
    for _ in 0..=MAX_ALIASES {
        let nearest = name::climb(&at).find(|n| view.has(n, Kind::Soa));
        if nearest != Some(apex) || view.cut(&at, apex, serves).is_some() {
            break;
        }
        match view.step(&at, kind, apex) {
            Step::Records(found) => {
                records.extend(found);
                break;
            }
            Step::Alias(found, to) => {
                let again = records.iter().any(|rr: &Rr| found.contains(rr));
                records.extend(found);
                if again {
                    break;
                }
                at = to;
            }
            Step::NoData => return with(negative(view, Some(apex), Outcome::NoError, records)),
            Step::NxDomain => return with(negative(view, Some(apex), Outcome::NxDomain, records)),
        }
    }
    with(Answer { records, ..Answer::bare(Outcome::NoError) })
}

/// What a resolver answers. It validates, unless it is told not to.
pub(super) fn as_resolver(world: &World, view: &View, asked: &str, kind: Kind, unchecked: bool) -> Reply {
    let mut records: Vec<Rr> = Vec::new();
    let mut at = asked.to_owned();
    let spoilt = |how: How| matches!(how, How::Bogus | How::BogusUnexplained);
    if kind == Kind::DS && view.faults.iter().any(|f| spoilt(f.how) && f.name == asked) {
        // Nothing is bogus for which nobody vouches.
        let vouched = Rr { name: at, ttl: 3600, data: Data::Other(Kind::DS.number()) };
        return Reply::Answer(Answer { records: vec![vouched], ..Answer::bare(Outcome::NoError) });
    }
    if asked.is_empty() && kind == Kind::Soa && view.fault("", kind).is_none() {
        // The root is signed, and whoever validates can tell.
        let answer = negative(view, None, Outcome::NoError, records);
        return Reply::Answer(Answer { validated: !unchecked, ..answer });
    }
    for _ in 0..=MAX_ALIASES {
        if let Some(fault) = view.fault(&at, kind).filter(|f| !(unchecked && spoilt(f.how))) {
            // When the whole world is silent, so is the resolver.
            return match fault.how {
                How::Timeout if fault.name.is_empty() => Reply::Silence,
                How::NxDomain => Reply::Answer(negative(view, None, Outcome::NxDomain, records)),
                How::Truncated => Reply::Truncated,
                How::Bogus => failed(DNSSEC_BOGUS),
                How::ServFail | How::BogusUnexplained => bare(Outcome::ServFail),
                How::Timeout | How::Refused | How::NotImp => failed(NO_REACHABLE_AUTHORITY),
            };
        }
        let apex = name::climb(&at).find(|n| view.has(n, Kind::Soa)).map(str::to_owned);
        let apex = apex.as_deref();
        if let Some(cut) = view.cut(&at, apex.unwrap_or(""), |_| true) {
            let glue = matches!(kind, Kind::A | Kind::Aaaa) && view.is_server_of(&at, cut) && view.has(&at, kind);
            if (at == cut && kind == Kind::Ns) || glue {
                records.extend(view.at(&at, kind).cloned());
                return Reply::Answer(Answer { records, ..Answer::bare(Outcome::NoError) });
            }
            // The delegation hides what stands beneath it; its servers speak.
            let spoken = view.servers(cut).find_map(|host| {
                let theirs = world.view_of(&Who::Server(host.to_owned()))?;
                match as_server(theirs, host, &at, kind) {
                    Reply::Answer(a) if a.definite() && a.authoritative => Some(a),
                    _ => None,
                }
            });
            let Some(mut answer) = spoken else { return failed(NO_REACHABLE_AUTHORITY) };
            let last = answer.aliases(&at).pop();
            let done = last.is_none() || answer.records.iter().any(|rr| rr.data.kind() == kind) || answer.soa().is_some();
            records.append(&mut answer.records);
            if done {
                return Reply::Answer(Answer { records, authoritative: false, ..answer });
            }
            at = last.unwrap_or_default();
            continue;
        }
        let step = match apex {
            Some(apex) => view.step(&at, kind, apex),
            None if view.exists(&at) => view.step(&at, kind, ""),
            None => Step::NxDomain,
        };
        match step {
            Step::Records(found) => {
                records.extend(found);
                return Reply::Answer(Answer { records, ..Answer::bare(Outcome::NoError) });
            }
            Step::Alias(found, to) => {
                records.extend(found);
                at = to;
            }
            Step::NoData => return Reply::Answer(negative(view, apex, Outcome::NoError, records)),
            Step::NxDomain => return Reply::Answer(negative(view, apex, Outcome::NxDomain, records)),
        }
    }
    // A loop, or a chain too long to follow.
    bare(Outcome::ServFail)
}
