//! The four lights of a domain: ownership, routing, permission, certificate. Each stands for the checks behind it, whichever there
//! are, and opens to what was expected and what was seen.

use super::face::Face;
use crate::app::show::CheckView;
use crate::model::claim::Claim;
use crate::model::compare::{Compared, Part, compare_record};
use crate::model::evidence::{Actor, Check, Verdict};
use crate::web::texts as t;

/// How a light shines: in its colour, its sign and its word, which say the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shine {
    /// The class: `good`, `wait`, `act` or `off`.
    pub(super) tone: &'static str,
    /// A sign that tells without colour.
    pub(super) sign: &'static str,
    /// The word.
    pub(super) word: &'static str,
}

const RIGHT: Shine = Shine { tone: "good", sign: "✓", word: t::right() };
const COMING: Shine = Shine { tone: "wait", sign: "…", word: t::not_there_yet() };
const WRONG: Shine = Shine { tone: "act", sign: "!", word: t::needs_change() };
const OURS: Shine = Shine { tone: "wait", sign: "!", word: t::ours_to_solve() };
const UNSEEN: Shine = Shine { tone: "off", sign: "?", word: t::could_not_look() };
const DARK: Shine = Shine { tone: "off", sign: "–", word: t::not_looked_yet() };
const LATER: Shine = Shine { tone: "off", sign: "–", word: t::not_yet() };

impl Shine {
    pub(super) fn of(check: &CheckView) -> Shine {
        match check.verdict {
            Verdict::Pass => RIGHT,
            Verdict::Wait => COMING,
            Verdict::Fail if check.who_acts == Actor::Tenant || check.who_acts == Actor::DnsProvider => WRONG,
            Verdict::Fail => OURS,
            Verdict::Unknown => UNSEEN,
        }
    }
}

/// One light.
pub(super) struct Light<'a> {
    /// Its name in addresses and ids.
    pub(super) id: &'static str,
    /// Its name.
    pub(super) name: &'static str,
    pub(super) shine: Shine,
    /// What it says in one sentence.
    pub(super) says: String,
    /// What it stands at: a page that is open keeps a light as its reader left it while this stays.
    pub(super) stands: String,
    /// Whether it is open before anybody touches it.
    pub(super) open: bool,
    /// The checks behind it.
    pub(super) checks: Vec<Shown<'a>>,
    /// Whether it is the certificate's, which has no checks but a state of its own.
    pub(super) certificate: bool,
}

/// A check next to what was expected of it.
pub(super) struct Shown<'a> {
    pub(super) check: &'a CheckView,
    pub(super) name: &'static str,
    pub(super) shine: Shine,
    /// What was expected, cut where no answer has it.
    pub(super) expected: Vec<Part<'a>>,
    /// What was seen, line by line.
    pub(super) observed: Vec<Line<'a>>,
    /// What to do, without what the records' own form says.
    pub(super) advice: String,
}

/// A line of what was seen.
pub(super) struct Line<'a> {
    /// Who said it, where the line tells.
    pub(super) by: Option<&'a str>,
    /// Where answers differ: whether this one is as expected.
    pub(super) fits: Option<bool>,
    /// For how long those who asked may keep it, in words.
    pub(super) kept: Option<String>,
    /// What was said, cut where it differs from what was expected.
    pub(super) parts: Vec<Part<'a>>,
}

/// Which light a check belongs to.
fn light_of(check: Check) -> &'static str {
    match check {
        Check::Ownership | Check::Holding => "ownership",
        Check::Caa | Check::Delegation => "permission",
        Check::Routing | Check::Preflight => "routing",
    }
}

/// The name of a check for people.
pub(super) fn check_name(check: Check) -> &'static str {
    match check {
        Check::Ownership => t::check_ownership(),
        Check::Routing => t::check_routing(),
        Check::Caa => t::check_caa(),
        Check::Delegation => t::check_delegation(),
        Check::Holding => t::check_holding(),
        Check::Preflight => t::check_preflight(),
    }
}

impl<'a> Shown<'a> {
    fn new(check: &'a CheckView) -> Shown<'a> {
        let passes = check.verdict == Verdict::Pass;
        let mut expected: Option<Vec<Part<'a>>> = None;
        let mut line = |by, said: &'a str, fits: Option<bool>, ttl: Option<u32>| {
            let kept = ttl.map(kept);
            let whole = |text| Line { by, fits, kept: kept.clone(), parts: vec![Part { text, differs: false }] };
            if passes || fits == Some(true) {
                return whole(said);
            }
            let Compared { expected: wanted, seen } = compare_record(&check.expected, said);
            if wanted.iter().all(|part| !part.differs) {
                return whole(said);
            }
            // The first answer that differs shows where; another one may differ elsewhere.
            expected.get_or_insert(wanted);
            Line { by, fits, kept, parts: seen }
        };
        // Where not all said the same, everybody's word stands side by side; else each answer once.
        let observed = if check.views.is_empty() {
            check.observed.iter().map(|seen| by_whom(check, seen)).map(|(by, said)| line(by, said, None, None)).collect()
        } else {
            check.views.iter().map(|v| line(Some(&v.observer), &v.said, Some(v.as_expected), v.ttl)).collect()
        };
        let expected = expected.unwrap_or_else(|| vec![Part { text: &check.expected, differs: false }]);
        Shown { check, name: check_name(check.check), shine: Shine::of(check), expected, observed, advice: advice(check) }
    }
}

/// A TTL in words.
fn kept(seconds: u32) -> String {
    match seconds {
        0..=119 => t::kept_seconds(seconds),
        120..=7_199 => t::kept_minutes(seconds / 60),
        7_200..=172_799 => t::kept_hours(seconds / 3_600),
        _ => t::kept_days(seconds / 86_400),
    }
    .plain()
}

/// Who said a line: an observer named before a colon, or the type of the question that it answers.
fn by_whom<'a>(check: &'a CheckView, line: &'a str) -> (Option<&'a str>, &'a str) {
    match line.split_once(": ") {
        Some((by, said)) if check.seen_by.iter().any(|s| s == by) || matches!(by, "A" | "AAAA" | "CNAME") => {
            (Some(by), said)
        }
        _ => (None, line),
    }
}

/// The advice without the steps at the provider: the records are shown as its form wants them.
fn advice(check: &CheckView) -> String {
    let mut advice = check.advice.clone();
    for step in check.dns_host.iter().flat_map(|host| &host.steps) {
        advice = advice.replace(&format!(" {step}"), "");
    }
    advice
}

/// In the order in which a light is decided: a fault, what is to come, what could not be seen, what is right.
fn rank(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Fail => 0,
        Verdict::Wait => 1,
        Verdict::Unknown => 2,
        Verdict::Pass => 3,
    }
}

/// The four lights.
pub(super) fn lights(face: &Face) -> Vec<Light<'_>> {
    let names = [("ownership", t::ownership()), ("routing", t::routing()), ("permission", t::permission())];
    let mut lights: Vec<Light<'_>> = names.into_iter().map(|(id, name)| of_checks(face, id, name)).collect();
    // One is open: the first at which it is somebody's move, so that nobody has to look for it.
    if let Some(first) = lights.iter_mut().find(|light| light.shine.tone == "act") {
        first.open = true;
    }
    lights.push(certificate(face));
    lights
}

fn of_checks<'a>(face: &'a Face, id: &'static str, name: &'static str) -> Light<'a> {
    let checks: Vec<&CheckView> = face.view.checks.iter().filter(|c| light_of(c.check) == id).collect();
    let worst = checks.iter().min_by_key(|c| rank(c.verdict));
    Light {
        id,
        name,
        shine: worst.map_or(DARK, |c| Shine::of(c)),
        says: worst.map_or_else(|| t::nobody_looked().to_owned(), |c| c.sentence.clone()),
        stands: worst.map(|c| c.code.clone()).unwrap_or_default(),
        open: false,
        checks: checks.into_iter().map(Shown::new).collect(),
        certificate: false,
    }
}

fn certificate(face: &Face) -> Light<'_> {
    let view = &face.view;
    let state = view.order.as_ref().map(|order| order.state.as_str());
    let (counted, behind) = (view.rollout.counted, view.rollout.behind.len());
    let plain = |shine, says: &str, stands: &str| (shine, says.to_owned(), stands.to_owned());
    let (shine, says, stands) = match (&view.certificate, state) {
        (Some(c), _) if face.now >= c.not_after => plain(OURS, t::certificate_ended(), "ended"),
        (Some(_), _) if counted == 0 || behind >= counted => plain(COMING, t::certificate_nowhere(), "nowhere"),
        (Some(_), _) if behind == 0 => plain(RIGHT, t::certificate_everywhere(), "everywhere"),
        (Some(_), _) => (COMING, t::certificate_some(counted - behind, counted).plain(), "some".to_owned()),
        (None, _) if view.claim == Claim::AwaitingDns => plain(LATER, t::certificate_later(), "later"),
        (None, Some("placed")) => plain(COMING, t::certificate_ordered(), "placed"),
        (None, Some("authorizing")) => plain(COMING, t::certificate_checked(), "authorizing"),
        (None, Some("ready" | "finalizing")) => plain(COMING, t::certificate_signed(), "ready"),
        (None, Some("issued")) => plain(COMING, t::certificate_comes(), "issued"),
        (None, Some("failed" | "lost")) if view.held.is_none() => plain(COMING, t::certificate_retried(), "retried"),
        (None, _) if view.held.is_some() => plain(LATER, t::certificate_held(), "held"),
        (None, _) => plain(COMING, t::certificate_waits(), "waits"),
    };
    Light { id: "certificate", name: t::certificate(), shine, says, stands, open: false, checks: vec![], certificate: true }
}
