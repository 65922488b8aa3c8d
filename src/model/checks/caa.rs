//! CAA: the climb of RFC 8659 §3 at every vantage point, and what the relevant set means for one order.
//!
//! Where the RFC and Let's Encrypt's software differ, the software decides, because an order that the CA refuses is no pass.

use crate::model::evidence::{Verdict, View};
use crate::model::look::{Answer, Ask, Caa, CaaAsk, Data, Kind, Observer, Outcome, Seen, name};
use crate::model::reason::Reason;

use super::caa_value::{IssueValue, parse};
use super::lookup_failure;
use super::reader::Reader;
use super::side_by_side::side_by_side;

/// What the CA would do now, as far as the vantage points show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaWould {
    /// Issue.
    Permit,
    /// Refuse because of a record.
    Deny,
    /// Refuse because it cannot look.
    Error,
    /// It depends on who looks.
    Unclear,
}

/// The decision on one name of the order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The name of the order it is about.
    pub name: String,
    /// Why.
    pub reason: Reason,
    /// What the CA would do.
    pub ca_would: CaWould,
    /// Where in the climb the relevant set was found, or which name failed.
    pub at: String,
    /// Whether a set was found at all.
    pub found: bool,
    /// The owner of the set when an alias led there.
    pub via: Option<String>,
    /// The relevant set.
    pub set: Vec<Caa>,
    /// The record that gave the reason.
    pub culprit: Option<Caa>,
    /// What was seen, one line each.
    pub observed: Vec<String>,
    /// Who saw it.
    pub seen_by: Vec<String>,
    /// What is wrong with the signatures, where a resolver says it.
    pub broken: Option<&'static str>,
    /// For how many seconds what was seen may be kept.
    pub ttl: Option<u32>,
    /// What every resolver saw, where they differ.
    pub views: Vec<View>,
}

/// The decision on the whole order: that on its worst name.
pub fn decide(ask: &Ask, seen: &Seen) -> Option<Decision> {
    decide_with(&Reader::new(ask, seen))
}

pub(super) fn decide_with(reader: &Reader<'_>) -> Option<Decision> {
    let caa = reader.ask.caa.as_ref()?;
    let mut names = vec![(reader.ask.hostname.as_str().to_owned(), caa.wildcard)];
    names.extend(caa.extra_names.iter().map(|n| {
        let n = name::canonical(n);
        n.strip_prefix("*.").map_or((n.clone(), false), |base| (base.to_owned(), true))
    }));
    let decisions: Vec<Option<Decision>> = names.iter().map(|(n, wild)| one_name(reader, caa, n, *wild)).collect();
    let decisions: Vec<Decision> = decisions.into_iter().collect::<Option<_>>()?;
    let badness = |d: &Decision| match d.reason.verdict() {
        Verdict::Fail => 3,
        Verdict::Unknown => 2,
        Verdict::Wait => 1,
        Verdict::Pass => 0,
    };
    let worst = decisions.iter().map(badness).max()?;
    decisions.into_iter().find(|d| badness(d) == worst)
}

/// Where a climb ended.
enum Climb<'a> {
    /// At a set.
    Set { at: String, via: Option<String>, set: Vec<Caa>, ttl: Option<u32> },
    /// At the top, with nothing.
    Nothing { ttl: Option<u32> },
    /// At an error.
    Error { at: String, answer: &'a Answer },
}

fn one_name(reader: &Reader<'_>, caa: &CaaAsk, hostname: &str, wildcard: bool) -> Option<Decision> {
    let resolvers = reader.resolvers();
    // The first resolver is asked for every label at once; the others follow its path and go on only if they must.
    let first: Vec<_> = resolvers.first().into_iter().map(|r| climb(reader, r, hostname, true)).collect();
    let rest: Vec<_> = resolvers.iter().skip(1).map(|r| climb(reader, r, hostname, false)).collect();
    let climbs: Vec<Climb<'_>> = first.into_iter().chain(rest).collect::<Option<_>>()?;
    let votes: Vec<Option<Decision>> =
        resolvers.iter().zip(&climbs).map(|(r, c)| vote(reader, r, caa, hostname, wildcard, c)).collect();
    let votes: Vec<Decision> = votes.into_iter().collect::<Option<_>>()?;
    let mut decision = count(&standing(reader, &votes)?)?;
    decision.observed = observed(resolvers, &votes);
    decision.views = views(resolvers, &votes);
    decision.seen_by = reader.resolver_labels();
    let verdict = decision.reason.verdict();
    if verdict == Verdict::Pass && caa.age > caa.max_age && !caa.max_age.is_zero() {
        decision.reason = Reason::CaaObservationStale;
    }
    Some(decision)
}

/// What the resolvers saw: once when they saw the same, each for itself when not.
fn observed(resolvers: &[String], votes: &[Decision]) -> Vec<String> {
    match votes {
        [first, others @ ..] if others.iter().all(|v| v.observed == first.observed) => first.observed.clone(),
        _ => resolvers.iter().zip(votes).map(|(r, v)| format!("resolver {r}: {}", v.observed.join("; "))).collect(),
    }
}

/// The votes that count: not those of resolvers that are down, unless too few are left.
fn standing(reader: &Reader<'_>, votes: &[Decision]) -> Option<Vec<Decision>> {
    let failed = |v: &Decision| v.ca_would == CaWould::Error && v.reason == Reason::CaaLookupFailed;
    if !votes.iter().any(failed) || count(votes)?.ca_would == CaWould::Permit {
        return Some(votes.to_vec());
    }
    let mute: Vec<&str> = reader.resolvers().iter().zip(votes).filter(|(_, v)| failed(v)).map(|(r, _)| r.as_str()).collect();
    let down = lookup_failure::down(reader, &mute)?;
    let up = |(r, v): (&String, &Decision)| (!down.contains(&r.as_str())).then(|| v.clone());
    if lookup_failure::too_few(votes.len() - down.len(), votes.len()) {
        let ours =
            |v: &Decision| if failed(v) { Decision { reason: Reason::ResolverUnavailable, ..v.clone() } } else { v.clone() };
        return Some(votes.iter().map(ours).collect());
    }
    Some(reader.resolvers().iter().zip(votes).filter_map(up).collect())
}

/// What each resolver saw, where they saw different things.
fn views(resolvers: &[String], votes: &[Decision]) -> Vec<View> {
    side_by_side(resolvers.iter().zip(votes).map(|(resolver, vote)| {
        let observer = Observer::Resolver(resolver.clone()).label();
        let as_expected = vote.ca_would == CaWould::Permit;
        let said = vote.observed.join("; ");
        let set = (vote.ca_would != CaWould::Error).then_some((&vote.at, vote.found, &vote.set));
        (set, View { observer, said, ttl: vote.ttl, as_expected })
    }))
}

/// All but one must permit, where there are at least three; the same number of votes as the CA's own rule leaves.
fn count(votes: &[Decision]) -> Option<Decision> {
    // What fails validation at one of them fails at the CA, whatever those see that do not validate.
    if let Some(bogus) = votes.iter().find(|v| v.reason == Reason::DnssecBogus) {
        return Some(bogus.clone());
    }
    let permits: Vec<&Decision> = votes.iter().filter(|v| v.ca_would == CaWould::Permit).collect();
    let spare = usize::from(votes.len() >= 3);
    if !votes.is_empty() && permits.len() + spare >= votes.len() {
        return permits.first().map(|v| (*v).clone());
    }
    let denies = votes.iter().find(|v| v.ca_would == CaWould::Deny);
    if let (Some(permit), Some(_)) = (permits.first(), denies) {
        let mut split = (*permit).clone();
        split.reason = Reason::CaaVantageDisagree;
        split.ca_would = CaWould::Unclear;
        return Some(split);
    }
    // Nobody permits, or what does not permit is an error: the most frequent answer among those, the first on a tie.
    let others: Vec<&Decision> = votes.iter().filter(|v| v.ca_would != CaWould::Permit).collect();
    let frequency = |v: &Decision| others.iter().filter(|o| o.reason == v.reason && o.at == v.at).count();
    let most = others.iter().map(|v| frequency(v)).max()?;
    others.iter().find(|v| frequency(v) == most).map(|v| (*v).clone())
}

fn climb<'a>(reader: &Reader<'a>, resolver: &str, hostname: &str, all_at_once: bool) -> Option<Climb<'a>> {
    if all_at_once {
        for label in name::climb(hostname) {
            let _ = reader.from(resolver, label, Kind::Caa);
        }
    }
    let mut absent_for = None;
    for label in name::climb(hostname) {
        let answer = reader.from(resolver, label, Kind::Caa)?;
        let ttl = answer.kept_for(label);
        // An NXDOMAIN for a top-level domain is an error, below it is an empty answer.
        let top = name::parent(label) == Some("");
        if !answer.definite() || (top && answer.outcome == Outcome::NxDomain && answer.aliases(label).is_empty()) {
            return Some(Climb::Error { at: label.to_owned(), answer });
        }
        let owner = answer.aliases(label).pop().unwrap_or_else(|| label.to_owned());
        let set: Vec<Caa> =
            answer.at(&owner, Kind::Caa).filter_map(|d| if let Data::Caa(c) = d { Some(c.clone()) } else { None }).collect();
        if !set.is_empty() {
            let via = (owner != label).then_some(owner);
            return Some(Climb::Set { at: label.to_owned(), via, set, ttl });
        }
        absent_for = absent_for.max(ttl);
    }
    Some(Climb::Nothing { ttl: absent_for })
}

fn vote(
    reader: &Reader<'_>,
    resolver: &str,
    caa: &CaaAsk,
    hostname: &str,
    wildcard: bool,
    climb: &Climb<'_>,
) -> Option<Decision> {
    let mut decision = Decision {
        name: hostname.to_owned(),
        reason: Reason::CaaAbsent,
        ca_would: CaWould::Permit,
        at: hostname.to_owned(),
        found: false,
        via: None,
        set: Vec::new(),
        culprit: None,
        observed: Vec::new(),
        seen_by: Vec::new(),
        broken: None,
        ttl: None,
        views: Vec::new(),
    };
    match climb {
        Climb::Nothing { ttl } => {
            decision.ttl = *ttl;
            decision.observed.push(format!("no CAA record from {hostname} up to its top-level domain"));
        }
        Climb::Set { at, via, set, ttl } => {
            decision.ttl = *ttl;
            let ours = via.as_ref().is_some_and(|v| name::within_any(v, &reader.ask.platform.suffixes));
            let (reason, culprit) = weigh(caa, wildcard, set);
            let permits = reason.verdict() == Verdict::Pass;
            decision.reason = if ours && !permits { Reason::CaaTargetExcludesCa } else { reason };
            decision.ca_would = if permits { CaWould::Permit } else { CaWould::Deny };
            decision.found = true;
            decision.at.clone_from(at);
            decision.via.clone_from(via);
            decision.set.clone_from(set);
            decision.culprit = culprit;
            let owner = via.as_ref().unwrap_or(at);
            decision.observed = set.iter().map(|c| format!("{owner} CAA {}", Data::Caa(c.clone()))).collect();
        }
        Climb::Error { at, answer } => {
            decision.ca_would = CaWould::Error;
            decision.at.clone_from(at);
            decision.observed.push(format!("CAA {at}: {}", answer.how()));
            decision.reason = error_reason(reader, resolver, at, answer, &mut decision)?;
        }
    }
    Some(decision)
}

/// What an error on the way means: whose it is, and whether it will pass by itself.
fn error_reason(reader: &Reader<'_>, resolver: &str, at: &str, answer: &Answer, decision: &mut Decision) -> Option<Reason> {
    if let Some(target) = failing_target(reader, at)? {
        decision.via = Some(target);
        return Some(Reason::CaaTargetLookupFailed);
    }
    if lookup_failure::resolvers_down(reader)? {
        return Some(Reason::ResolverUnavailable);
    }
    if answer.outcome == Outcome::Truncated {
        return Some(Reason::CaaAnswerTruncated);
    }
    if lookup_failure::bogus(reader, resolver, at, Kind::Caa, answer)? {
        decision.broken = answer.ede.iter().find_map(|code| lookup_failure::broken_signatures(*code));
        return Some(Reason::DnssecBogus);
    }
    if answer.outcome == Outcome::NotImp {
        return Some(Reason::CaaTypeUnsupported);
    }
    let views = reader.authority(at, Kind::Caa)?;
    let said: Vec<_> = views.answers.iter().filter_map(|(s, a)| a.map(|a| (s, a))).collect();
    decision.observed.extend(said.iter().map(|(s, a)| format!("{}: CAA {at}: {}", s.host, a.how())));
    let all = |outcome: &Outcome| !said.is_empty() && said.iter().all(|(_, a)| a.outcome == *outcome);
    Some(if all(&Outcome::NotImp) { Reason::CaaTypeUnsupported } else { Reason::CaaLookupFailed })
}

/// The name of ours at which the look-up fails, when an alias at `at` leads there.
fn failing_target(reader: &Reader<'_>, at: &str) -> Option<Option<String>> {
    let mut here = at.to_owned();
    for _ in 0..10 {
        let alias = reader.any(&here, Kind::Cname)?;
        let Some(next) = alias.aliases(&here).first().cloned() else { return Some(None) };
        if name::within_any(&next, &reader.ask.platform.suffixes) {
            let failed = !reader.any(&next, Kind::Caa)?.definite();
            return Some(failed.then_some(next));
        }
        here = next;
    }
    Some(None)
}

/// Tags the CA knows; an unknown one with a critical flag forbids.
const KNOWN_TAGS: [&str; 5] = ["issue", "issuewild", "iodef", "issuemail", "issuevmc"];

/// What a set means for the order, with the record that decides.
fn weigh(caa: &CaaAsk, wildcard: bool, set: &[Caa]) -> (Reason, Option<Caa>) {
    let tagged = |tag: &str| set.iter().filter(|c| c.tag.eq_ignore_ascii_case(tag)).collect::<Vec<_>>();
    // Flag 128 is the critical one; Let's Encrypt takes 1 for it too.
    let critical = set.iter().find(|c| c.flags & 129 != 0 && !KNOWN_TAGS.iter().any(|t| c.tag.eq_ignore_ascii_case(t)));
    if let Some(c) = critical {
        return (Reason::CaaUnknownCritical, Some(c.clone()));
    }
    let wild = if wildcard { tagged("issuewild") } else { Vec::new() };
    let by_wild = !wild.is_empty();
    let bearing = if by_wild { wild } else { tagged("issue") };
    if bearing.is_empty() {
        return (Reason::CaaNoRestriction, None);
    }
    let codes: Vec<(Reason, &Caa)> = bearing.iter().map(|c| (weigh_one(caa, by_wild, c), *c)).collect();
    // One record that permits is enough; else the most telling obstacle, the first of its kind.
    let order = [
        Reason::CaaPermits,
        Reason::CaaParamUnsatisfiable,
        Reason::CaaAccountMismatch,
        Reason::CaaMethodNotAllowed,
        Reason::CaaIssuerSpelling,
        Reason::CaaMalformed,
        Reason::CaaWildcardExcludesCa,
        Reason::CaaExcludesCa,
        Reason::CaaForbidsWildcard,
        Reason::CaaForbidsAll,
    ];
    let found = order.iter().find_map(|r| codes.iter().find(|(code, _)| code == r));
    found.map_or((Reason::CaaNoRestriction, None), |(r, c)| (*r, Some((*c).clone())))
}

fn weigh_one(caa: &CaaAsk, by_wild: bool, record: &Caa) -> Reason {
    let (domain, parameters) = match parse(&record.value) {
        IssueValue::Malformed(_) => return Reason::CaaMalformed,
        IssueValue::Nobody if by_wild => return Reason::CaaForbidsWildcard,
        IssueValue::Nobody => return Reason::CaaForbidsAll,
        IssueValue::Issuer { domain, parameters } => (domain, parameters),
    };
    if !caa.issuers.contains(&domain) {
        return match caa.issuers.iter().any(|i| i.eq_ignore_ascii_case(&domain)) {
            true => Reason::CaaIssuerSpelling,
            false if by_wild => Reason::CaaWildcardExcludesCa,
            false => Reason::CaaExcludesCa,
        };
    }
    // Parameter names match in lower case only; others limit nothing.
    let all = |wanted: &str| parameters.iter().filter(|(k, _)| k == wanted).map(|(_, v)| v.as_str()).collect::<Vec<_>>();
    let (accounts, methods) = (all("accounturi"), all("validationmethods"));
    if accounts.len() > 1 || methods.len() > 1 {
        return Reason::CaaParamUnsatisfiable;
    }
    if accounts.first().is_some_and(|a| caa.account_uri.as_deref() != Some(*a)) {
        return Reason::CaaAccountMismatch;
    }
    if methods.first().is_some_and(|m| !m.split(',').any(|one| one == caa.method)) {
        return Reason::CaaMethodNotAllowed;
    }
    Reason::CaaPermits
}
