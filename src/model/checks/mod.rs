//! The judges: from what was seen to one [`Finding`] per check. Pure.
//!
//! A judge reads answers through a [`reader::Reader`]. Where an answer it needs is not there yet, the reader notes the question
//! and the judge stops; [`wanted`] hands those questions to whoever does the asking. So one piece of code decides both what to
//! ask and what it means, and the real look-ups, the scripted twin and a replayed log all come to the same verdict.
//!
//! What always holds: a failed look-up is never read as an absence, an absence never as a permission, and an answer that comes
//! from inside our own zones never as a proof. How to get it wrong: read a record without asking whether its answer is
//! definite, or decide TXT by a resolver's word when the zone's own servers are silent.

pub mod caa;
pub mod caa_value;
mod caa_words;
mod delegation;
mod delegation_hunt;
mod delegation_words;
mod hints;
mod lasting;
mod lookup_failure;
mod ownership;
mod ownership_hunt;
mod ownership_words;
mod panel;
mod reader;
mod routing;
mod routing_hunt;
mod routing_servers;
mod routing_walk;
mod routing_words;
mod side_by_side;
mod spelling;
mod txt_value;
mod unjudged;

pub use lookup_failure::is_public;
pub use txt_value::{joined, normalised};
pub use unjudged::{texts, zone_of};

use crate::model::evidence::{Check, Finding};
use crate::model::look::{Ask, Probe, Seen};
use crate::model::reason::Reason;
use reader::Reader;

/// The probes that are still open before every check of `ask` can be judged; empty when nothing more is to be asked.
pub fn wanted(ask: &Ask, seen: &Seen) -> Vec<Probe> {
    let reader = Reader::new(ask, seen);
    // Each judge runs as far as it comes; what stops it is in the reader's list afterwards.
    let _ = (caa_step(&reader), ownership::judge(&reader), routing::judge(&reader), delegation::judge(&reader));
    unjudged::want(&reader);
    reader.open()
}

/// One finding per check that `ask` names: ownership, routing, CAA, delegation, in this order.
pub fn judge(ask: &Ask, seen: &Seen) -> Vec<Finding> {
    let reader = Reader::new(ask, seen);
    let mut findings = Vec::new();
    if ask.ownership.is_some() {
        findings.push(ownership::judge(&reader).unwrap_or_else(|| unfinished(&reader, Check::Ownership)));
    }
    if ask.routing.is_some() {
        findings.push(routing::judge(&reader).unwrap_or_else(|| unfinished(&reader, Check::Routing)));
    }
    if ask.caa.is_some() {
        findings.push(caa_step(&reader).unwrap_or_else(|| unfinished(&reader, Check::Caa)));
    }
    if ask.delegation.is_some() {
        findings.push(delegation::judge(&reader).unwrap_or_else(|| unfinished(&reader, Check::Delegation)));
    }
    for finding in &mut findings {
        bound(finding);
        panel::word(&reader, finding);
    }
    findings
}

/// How many lines of what was seen are kept, and how long one may be: a zone decides neither what a page weighs nor what a row does.
const MAX_LINES: usize = 24;
const MAX_LINE: usize = 600;

fn bound(finding: &mut Finding) {
    let more = finding.observed.len().saturating_sub(MAX_LINES);
    finding.observed.truncate(MAX_LINES);
    if more > 0 {
        finding.observed.push(format!("and {more} lines more"));
    }
    finding.seen_by.truncate(MAX_LINES);
    finding.views.truncate(MAX_LINES);
    let said = finding.views.iter_mut().map(|v| &mut v.said);
    for line in finding.observed.iter_mut().chain(said).chain([&mut finding.advice]) {
        if let Some((end, _)) = line.char_indices().nth(MAX_LINE) {
            line.truncate(end);
            line.push('…');
        }
    }
}

fn caa_step(reader: &Reader<'_>) -> Option<Finding> {
    caa::decide_with(reader).map(|decision| caa_words::finding(reader.ask, &decision))
}

/// A check whose answers did not all come before the look ended. That is our limit, and unknown.
fn unfinished(reader: &Reader<'_>, check: Check) -> Finding {
    let reason = match check {
        Check::Caa => Reason::CaaLookupFailed,
        Check::Ownership | Check::Routing | Check::Delegation | Check::Holding | Check::Preflight => Reason::DnsLookupFailed,
    };
    let why = reader.seen.cut_short.clone().unwrap_or_else(|| "not every question was answered".to_owned());
    Finding {
        check,
        reason,
        expected: format!("complete answers for {}", reader.ask.hostname),
        observed: vec![format!("the look ended early: {why}")],
        seen_by: reader.resolver_labels(),
        views: Vec::new(),
        advice: format!("We could not finish looking at {}; we will look again.", reader.ask.hostname),
        found_at: None,
        found_via: None,
        record_to_publish: Vec::new(),
        dns_host: None,
    }
}
