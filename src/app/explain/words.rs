//! What happens next, in plain sentences.

use super::document::{EdgeStory, HeldStory, OrderStory, PlaceStory};
use crate::app::show::{DomainView, HeldView};
use crate::model::bulk::Hold;
use crate::model::claim::Claim;
use crate::model::limits::{Closed, LimitName};
use crate::model::moment::Moment;

/// What the sentences are made from.
pub(super) struct Facts<'a> {
    pub(super) domain: &'a DomainView,
    pub(super) place: Option<&'a PlaceStory>,
    /// The latest first.
    pub(super) orders: &'a [OrderStory],
    pub(super) edges: &'a [EdgeStory],
    pub(super) now: Moment,
}

pub(super) fn next(f: &Facts<'_>) -> Vec<String> {
    let mut out = of_claim(f);
    if let Some(partner) = f.domain.partner.as_ref().filter(|_| f.domain.claim.is_open()) {
        out.push(partner.sentence.clone());
    }
    out
}

fn of_claim(f: &Facts<'_>) -> Vec<String> {
    match f.domain.claim {
        Claim::AwaitingDns => awaiting(f),
        Claim::Queued => queued(f),
        Claim::Live => live(f),
        Claim::Releasing => match f.domain.due_at {
            Some(end) => vec![format!("Key and certificate are kept until {end} and destroyed then.")],
            None => vec!["Key and certificate are destroyed once the grace is over.".to_owned()],
        },
        Claim::Expired => vec!["Nothing more happens until the name is claimed again, which gives a new value.".to_owned()],
        Claim::Released | Claim::Withdrawn => vec!["Nothing more happens. Whoever claims the name begins anew.".to_owned()],
    }
}

/// When somebody looks again.
fn look(f: &Facts<'_>) -> String {
    match f.domain.due_at {
        Some(due) if due <= f.now => "A look at DNS is due now.".to_owned(),
        Some(due) => format!("The next look at DNS is due at {due}; \"check now\" looks at once."),
        None => "Nobody looks again before somebody asks.".to_owned(),
    }
}

/// What an import does to the names it brought while it is held, and how it goes on.
fn by_import(held: &HeldView) -> String {
    let since = held.since.map_or_else(String::new, |at| format!(" since {at}"));
    let import = held.import_id.as_ref().map_or_else(String::new, |id| format!(" {id}"));
    match held.by {
        Hold::ByTenant => format!(
            "The import{import} that brought the name is paused by its tenant{since}: nothing is ordered before it is resumed, or \
             the name is claimed by itself."
        ),
        Hold::ByOperator => format!(
            "The import{import} that brought the name is paused by the operator{since}: nothing is ordered before it is resumed, \
             or the name is claimed by itself."
        ),
        Hold::Cancelled => format!(
            "The import{import} that brought the name was cancelled{since}: nothing is ordered unless the name is claimed by \
             itself."
        ),
    }
}

fn awaiting(f: &Facts<'_>) -> Vec<String> {
    let then = match &f.domain.held {
        Some(held) => format!("Once every check passes, this claim holds the name. {}", by_import(held)),
        None => "Once every check passes, this claim holds the name and its order joins the queue.".to_owned(),
    };
    vec![
        look(f),
        then,
        format!(
            "If that does not happen by {}, the attempt ends and the name needs a new value.",
            f.domain.attempt.deadline
        ),
    ]
}

fn queued(f: &Facts<'_>) -> Vec<String> {
    let open = f.orders.iter().find(|o| !matches!(o.state.as_str(), "issued" | "failed" | "lost"));
    let mut out = match (open, f.place) {
        (Some(o), _) if o.state == "waiting" && o.not_before.is_none() => {
            let mut told = match &f.domain.held {
                Some(held) => vec![by_import(held)],
                None => vec!["No order is spent until every check passes again.".to_owned()],
            };
            told.push(look(f));
            told
        }
        (Some(_), Some(place)) => vec![turn(place)],
        (Some(o), None) if matches!(o.state.as_str(), "waiting" | "granted") => {
            vec![format!("Its order {} at {} is {} and goes to the CA in its turn.", o.id, o.issuer, o.state)]
        }
        (Some(o), None) => vec![format!(
            "The order is with {} since {} ({}); we ask again at {}.",
            o.issuer,
            o.state_since,
            o.state,
            f.domain.due_at.unwrap_or(f.now)
        )],
        (None, _) => vec!["A new order is opened in a moment.".to_owned()],
    };
    if let Some(held) = f.place.and_then(|p| p.held.as_ref()) {
        out.push(held_back(held));
    }
    if let Some(paused) = f.place.and_then(|p| p.paused_until) {
        out.push(format!("The certificate authority lets nothing of this account through before {paused}."));
    }
    out
}

/// Which limit of its own has no room, and whose doing that is.
fn held_back(held: &HeldStory) -> String {
    let what = match held.limit.parse() {
        Ok(LimitName::CertificatesPerDomain) => format!("certificates under {}", held.key),
        Ok(LimitName::CertificatesPerName) => format!("certificates for {}", held.key),
        _ => format!("failed validations of {}", held.key),
    };
    match held.closed.as_deref().map(str::parse) {
        Some(Ok(Closed::Paused)) => {
            let link = held.link.as_ref().map_or_else(String::new, |link| format!(" on {link}"));
            format!(
                "The certificate authority paused {} until the platform's operator lifts that{link}; it is asked again at {}.",
                held.key, held.until
            )
        }
        Some(_) => format!(
            "The certificate authority allows no more {what} before {}: others have used them up, not this claim and not this platform.",
            held.until
        ),
        None => format!("The certificate authority allows no more {what} before {}.", held.until),
    }
}

fn turn(place: &PlaceStory) -> String {
    let lane = place.lane;
    match (place.position, place.expected_at) {
        (_, None) => format!("Its order waits at {}, which has no account yet.", place.issuer),
        (0, Some(at)) => format!("Its order is granted in the coming round at {} (lane {lane}), at {at}.", place.issuer),
        (n, Some(at)) => format!(
            "Its order is number {n} of {} that wait at {} (lane {lane}); its turn is expected at {at}.",
            place.waiting, place.issuer
        ),
    }
}

fn live(f: &Facts<'_>) -> Vec<String> {
    let mut out = Vec::new();
    let without: Vec<&str> =
        f.edges.iter().filter(|e| e.counted && (!e.has_it || e.observed.is_some())).map(|e| e.name.as_str()).collect();
    if !without.is_empty() {
        out.push(format!("These edges follow: {}.", without.join(", ")));
    }
    match &f.domain.certificate {
        Some(c) if c.not_after <= f.now => out.push(format!("The certificate ended at {}.", c.not_after)),
        Some(c) => out.push(format!("The certificate lasts until {}.", c.not_after.in_words())),
        None => out.push("There is no certificate in use.".to_owned()),
    }
    out.extend(f.domain.renewal.as_ref().map(|r| r.sentence.clone()));
    if let Some(why) = f.domain.renewal.as_ref().and_then(|r| r.explanation.as_ref()) {
        out.push(format!("The certificate authority says why on {why}."));
    }
    out.push("A live name is looked at once a day; a difference is looked at again from everywhere at once.".to_owned());
    out
}
