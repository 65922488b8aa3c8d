//! The TXT proof, read at the servers of every zone on the alias path.

use std::time::Duration;

use crate::model::evidence::Finding;
use crate::model::look::{Answer, Kind, Outcome, OwnershipAsk, name};
use crate::model::reason::Reason;

use super::lookup_failure::{self, Failure};
use super::reader::{Reader, Server};
use super::txt_value::{Text, normalised};
use super::{ownership_hunt, ownership_words};

/// How many zones an alias path may cross.
const MAX_STEPS: usize = 10;

/// What one server says in the end.
#[derive(Debug, Clone)]
pub enum Said<'a> {
    /// TXT values at the end of the alias path.
    Values(Vec<Text>),
    /// No TXT there, with the negative answer.
    Nothing(&'a Answer),
    /// The path leads into our own zones, which proves nothing.
    IntoOurs,
    /// The path has no end.
    NoEnd,
    /// It cannot be asked, or does not speak for the zone.
    Silent(Option<&'a Answer>),
}

/// One server's word, with the path that led to it.
#[derive(Debug, Clone)]
pub struct Word<'a> {
    /// The server.
    pub server: Server,
    /// Its zone.
    pub zone: String,
    /// The aliases from the expected name on.
    pub path: Vec<String>,
    /// What it says.
    pub said: Said<'a>,
    /// For how many seconds that may be kept.
    pub ttl: Option<u32>,
}

/// What was concluded, for the words.
#[derive(Debug)]
pub struct Conclusion<'a> {
    /// The reason.
    pub reason: Reason,
    /// Where the thing was found that explains the reason: a name, a value, a server.
    pub place: String,
    /// What every server said.
    pub words: Vec<Word<'a>>,
    /// Why nothing could be read, when that is so.
    pub failure: Option<Failure>,
}

/// Judges the proof; `None` while answers are missing, or when it is not asked for.
pub fn judge(reader: &Reader<'_>) -> Option<Finding> {
    let ask = reader.ask.ownership.as_ref()?;
    let conclusion = conclude(reader, ask)?;
    Some(ownership_words::finding(reader, ask, &conclusion))
}

fn conclude<'a>(reader: &Reader<'a>, ask: &OwnershipAsk) -> Option<Conclusion<'a>> {
    let expected = name::canonical(&ask.name);
    let words = read(reader, &expected, &[], &mut vec![expected.clone()])?;
    let done = |reason, place: String, words| Some(Conclusion { reason, place, words, failure: None });

    let speaking = words.iter().filter(|w| !matches!(w.said, Said::Silent(_))).count();
    if speaking == 0 {
        return unreadable(reader, &expected, words);
    }
    let value = normalised(&ask.value);
    let matches = |w: &Word<'_>| matches!(&w.said, Said::Values(v) if v.iter().any(|x| normalised(&x.value) == value));
    let matching = words.iter().filter(|w| matches(w)).count();
    if matching == 0 {
        return ownership_hunt::diagnose(reader, ask, &expected, words);
    }
    if matching < speaking {
        return done(Reason::TxtPropagating, expected, words);
    }
    if lookup_failure::any_bogus(reader, &expected, Kind::Txt, &reader.each_awake(&expected, Kind::Txt)?)? {
        return unreadable(reader, &expected, words);
    }
    if let Some(over) = ask.age.and_then(|age| age.checked_sub(ask.max_age)).filter(|over| *over > Duration::ZERO) {
        return done(Reason::TxtTokenExpired, over.as_secs().to_string(), words);
    }
    if let Some(silent) = words.iter().find(|w| matches!(w.said, Said::Silent(_))) {
        let host = silent.server.host.clone();
        return done(Reason::OkOneServerDown, host, words);
    }
    let exact = words.iter().all(|w| matches!(&w.said, Said::Values(v) if v.iter().any(|x| x.value == ask.value)));
    done(if exact { Reason::TxtOk } else { Reason::TxtOkNormalised }, expected, words)
}

/// Nobody speaks for the zone, or validation fails.
fn unreadable<'a>(reader: &Reader<'a>, expected: &str, words: Vec<Word<'a>>) -> Option<Conclusion<'a>> {
    let resolvers = reader.each(expected, Kind::Txt)?;
    let unregistered = lookup_failure::unregistered(reader)? && resolvers.iter().any(|(_, a)| a.definite());
    let mut failure = lookup_failure::explain(reader, expected, Kind::Txt, &resolvers)?;
    if unregistered && failure.reason != Reason::ResolverUnavailable {
        failure.reason = Reason::DomainNotRegistered;
    }
    Some(Conclusion { reason: failure.reason, place: failure.zone.clone(), words, failure: Some(failure) })
}

/// What the servers of `at`'s zone say, following aliases into other zones. `followed`: every name is read once, however many
/// servers lead to it; else servers that contradict each other could send us down all their ways.
fn read<'a>(reader: &Reader<'a>, at: &str, path: &[String], followed: &mut Vec<String>) -> Option<Vec<Word<'a>>> {
    let views = reader.authority(at, Kind::Txt)?;
    let zone = views.zone.apex;
    let mut words = Vec::new();
    if views.answers.is_empty() && !path.is_empty() {
        // An alias into a domain that does not exist: there is no server to ask, and none is needed.
        let answer = reader.any(at, Kind::Txt)?;
        if answer.outcome == Outcome::NxDomain {
            let server = Server { host: "our resolvers".to_owned(), address: None };
            let (zone, path, ttl) = (zone.clone(), path.to_vec(), answer.kept_for(at));
            words.push(Word { server, zone, path, said: Said::Nothing(answer), ttl });
        }
    }
    for (server, answer) in views.answers {
        let Some(answer) = reader.speaking(&server, answer, at)? else {
            let (zone, path) = (zone.clone(), path.to_vec());
            words.push(Word { server, zone, path, said: Said::Silent(answer), ttl: None });
            continue;
        };
        let ttl = answer.kept_for(at);
        let word = |path: Vec<String>, said| Word { server: server.clone(), zone: zone.clone(), path, said, ttl };
        let mut aliases = answer.aliases(at);
        // A server speaks for its own zone; what lies outside is read at the servers there.
        if let Some(outside) = aliases.iter().position(|n| !name::within(n, &zone)) {
            aliases.truncate(outside + 1);
        }
        let whole: Vec<String> = path.iter().chain(&aliases).cloned().collect();
        let last = aliases.last().map_or(at, String::as_str);
        let circles = whole.iter().enumerate().any(|(i, n)| whole[..i].contains(n) || followed.first() == Some(n));
        let values: Vec<Text> =
            answer.at(last, Kind::Txt).filter(|_| name::within(last, &zone)).filter_map(Text::of).collect();
        let ends_here = aliases.is_empty()
            || name::within(last, &zone) && answer.soa().is_some_and(|(owner, ..)| name::within(last, owner));
        if aliases.iter().any(|n| name::within_any(n, &reader.ask.platform.suffixes)) {
            words.push(word(whole, Said::IntoOurs));
        } else if circles || whole.len() > MAX_STEPS {
            words.push(word(whole, Said::NoEnd));
        } else if !values.is_empty() {
            words.push(word(whole, Said::Values(values)));
        } else if ends_here {
            words.push(word(whole, Said::Nothing(answer)));
        } else if !followed.contains(&last.to_owned()) {
            followed.push(last.to_owned());
            words.extend(read(reader, last, &whole, followed)?);
        }
    }
    Some(words)
}
