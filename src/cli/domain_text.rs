//! A domain in plain text.

use std::io;

use super::Out;
use super::domain::Shown;
use super::out::many;
use crate::model::evidence::Verdict;

/// How much of the history is printed.
const EVENTS: usize = 10;

pub(super) fn print(shown: &Shown, out: &mut Out<'_>) -> io::Result<()> {
    let view = &shown.view;
    let ascii =
        if view.hostname_display == view.hostname.as_str() { String::new() } else { format!(" ({})", view.hostname) };
    out.line(&format!("{}{ascii}  {}  {}", view.hostname_display, view.claim, view.id))?;
    out.line(&view.sentence)?;
    if let Some(partner) = view.partner.as_ref().filter(|_| view.claim.is_open()) {
        out.line(&partner.sentence)?;
    }
    if view.claim.is_open() {
        out.line("")?;
        let rows: Vec<_> =
            view.records.iter().map(|r| vec![r.kind.clone(), r.host.clone(), r.value.clone(), r.name.clone()]).collect();
        out.table(&["TYPE", "HOST", "VALUE", "FULL NAME"], &rows)?;
    }
    // Of a claim that is gone or on its way out nobody has to do anything.
    let checks = if view.claim.is_open() { view.checks.as_slice() } else { &[] };
    for check in checks {
        let verdict = match check.verdict {
            Verdict::Pass => "right",
            Verdict::Wait => "waits",
            Verdict::Fail => "wrong",
            Verdict::Unknown => "unknown",
        };
        out.line("")?;
        out.line(&format!("{verdict:<8}{}  ({})", check.sentence, check.code))?;
        out.line(&format!("        expected  {}", check.expected))?;
        for seen in &check.observed {
            out.line(&format!("        seen      {seen}"))?;
        }
        if !check.advice.is_empty() {
            out.line(&format!("        to do     {}", check.advice))?;
        }
    }
    if let Some(certificate) = &view.certificate {
        let has = view.rollout.counted - view.rollout.behind.len().min(view.rollout.counted);
        out.line("")?;
        out.line(&format!(
            "Certificate {} until {}, on {has} of {}",
            certificate.serial,
            certificate.not_after,
            many(view.rollout.counted, "edge")
        ))?;
    }
    if !view.events.is_empty() {
        out.line("")?;
    }
    for event in view.events.iter().take(EVENTS) {
        out.line(&format!("{}  {:<20}  {} (by {})", event.at, event.kind, event.cause, event.actor))?;
    }
    out.line("")?;
    out.line(&shown.page)
}
