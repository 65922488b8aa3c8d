//! What people are told of a renewal: when it comes and why then, or what stands against it and until when that is no harm.

use super::super::domain::TieState;
use super::super::evidence::{Check, Evidence, Verdict};
use super::super::moment::Moment;
use super::schedule::Schedule;

/// What the words are made from.
#[derive(Clone, Copy, Debug)]
pub struct Told<'a> {
    /// When, and why then.
    pub schedule: &'a Schedule,
    /// The tie between name and tenant.
    pub tie: TieState,
    /// The last look.
    pub evidence: &'a [Evidence],
    /// Tries that failed since the last success.
    pub failures: i64,
    /// The end of the certificate in use.
    pub not_after: Moment,
    /// The present moment.
    pub now: Moment,
}

/// What stands against it: the finding of a look that an order does not pass.
fn against<'a>(t: &Told<'a>) -> Option<&'a Evidence> {
    let fails = |e: &&Evidence| {
        matches!(e.finding.check, Check::Routing | Check::Caa)
            && matches!(e.finding.verdict(), Verdict::Fail | Verdict::Wait)
    };
    t.evidence.iter().find(fails)
}

/// What is at risk, with the date: nothing where the renewal will come by itself.
pub fn at_risk(t: &Told<'_>) -> Option<String> {
    let (at, end) = (t.schedule.at.in_words(), t.not_after.in_words());
    let due = t.now >= t.schedule.at;
    if t.tie == TieState::Lost {
        return Some(format!(
            "The certificate is not renewed while nothing ties the name to its tenant; the one in use ends on {end}."
        ));
    }
    if let Some(by) = against(t) {
        let why = by.finding.reason.sentence();
        return Some(match due {
            false => format!("Renewal will fail on {at} unless this changes: {why} The certificate in use ends on {end}."),
            true => format!("The renewal that was due on {at} waits for this: {why} The certificate in use ends on {end}."),
        });
    }
    (t.failures > 0).then(|| {
        format!("The last try at a renewal did not succeed and is followed by others; the certificate in use ends on {end}.")
    })
}

/// When the next certificate comes and why then.
pub fn planned(t: &Told<'_>) -> String {
    let at = t.schedule.at.in_words();
    match t.schedule.window {
        Some(w) => format!(
            "It is renewed by itself on {at}: the certificate authority asks for that between {} and {}.",
            w.start.in_words(),
            w.end.in_words()
        ),
        None => format!("It is renewed by itself on {at}, long before it ends."),
    }
}
