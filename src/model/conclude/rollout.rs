//! What the edges' cursors, and a request through the public name, mean.

use std::time::Duration;

use serde_json::json;

use super::Conclusion;
use crate::model::domain::{Effect, PublicProbe, Situation};
use crate::model::id::EdgeId;
use crate::model::moment::Moment;
use crate::model::order::Order;
use crate::model::outcome::{Outcome, Write};
use crate::model::pace;
use crate::model::plan::{self, Observe};

/// An edge counts while it was heard of within this.
pub const FRESH_EDGE: Duration = Duration::from_secs(30);

/// How far the counted edges are with one thing of the feed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rollout {
    /// Edges that count: registered, not drained, heard from lately.
    pub counted: usize,
    /// Those of them that do not have it yet.
    pub behind: Vec<(EdgeId, String)>,
    /// Those that have it and do not serve it, with what their own probe saw.
    pub exceptions: Vec<(EdgeId, String)>,
    /// Whether the feed has given it a number yet.
    pub numbered: bool,
}

impl Rollout {
    /// Whether at least `min_edges` count and all of them have it.
    pub fn complete(&self, min_edges: usize) -> bool {
        self.numbered && self.counted >= min_edges && self.behind.is_empty() && self.exceptions.is_empty()
    }
}

/// Edges that lack a renewed certificate for so long get the word to serve it nevertheless, in its place after the certificate.
const STRAGGLER: Duration = Duration::from_secs(600);
/// The longest wait between two looks at a rollout that is under way.
const NEXT_LOOK: Duration = Duration::from_secs(5);

/// The edges were asked about the challenge.
pub fn challenge_rollout(s: &Situation, order: &Order, r: &Rollout, min_edges: usize, now: Moment) -> Conclusion {
    let late = now.since(order.state_since) > plan::LAGGARD;
    if r.complete(min_edges) {
        // After a minute some edge may have been left behind: the token must be seen at every address of the name.
        return if late { Conclusion::Observe(Observe::Token) } else { Conclusion::Act(Effect::Announce) };
    }
    let next = now + pace::poll_again_in(order.state_since, now).min(NEXT_LOOK);
    let out = Outcome::of(s, next);
    if late && r.numbered && r.counted - r.behind.len() >= min_edges.max(1) && !r.behind.is_empty() {
        let names: Vec<_> = r.behind.iter().map(|(_, name)| name.clone()).collect();
        let lost = r.behind.iter().map(|(id, _)| id.clone()).collect();
        return out
            .write(Write::EdgesLost(lost))
            .tell(
                "edges_lost",
                "nameplate",
                "edges that did not take a token within a minute count no more until they catch up",
                json!({ "edges": names }),
            )
            .into();
    }
    out.into()
}

/// The token was fetched (or not) from every address of the name.
pub fn token_fetched(s: &Situation, order: &Order, everywhere: bool, now: Moment) -> Conclusion {
    if everywhere {
        return Conclusion::Act(Effect::Announce);
    }
    let next = now + pace::poll_again_in(order.state_since, now);
    // No event: this is asked again and again until the order's time is over, and its end is told.
    Outcome::of(s, next).into()
}

/// The edges were asked about the certificate: whether they have it and, once they are told to, whether they serve it.
pub fn certificate_rollout(s: &Situation, r: &Rollout, min_edges: usize, now: Moment) -> Conclusion {
    let complete = r.complete(min_edges);
    match (s.switch_at(), &s.certificate) {
        // Who is behind gets the certificate before the word to serve it: nobody waits for a straggler for ever.
        (Some(at), Some(in_use)) if complete || now.since(at) > STRAGGLER => {
            Outcome::of(s, now).write(Write::RouteServe(in_use.id.clone())).write(Write::Switched).into()
        }
        (None, _) if complete => Conclusion::Observe(Observe::PublicName),
        _ => {
            let since = s.certificate.as_ref().map_or(now, |c| c.stored_at);
            let wait = match s.domain.active_since {
                None => pace::poll_again_in(since, now).min(NEXT_LOOK),
                // While the one before is served there is no hurry.
                Some(_) => (now.since(since) / 20).clamp(NEXT_LOOK, STRAGGLER),
            };
            let due = (now + wait).min(plan::next_besides_the_switch(s, now));
            Outcome::of(s, due.max(now + Duration::from_millis(100))).into()
        }
    }
}

/// Every counted edge serves the certificate; the public name was asked once. What came before it is not needed any more.
pub fn public_name(s: &Situation, probe: PublicProbe, now: Moment) -> Outcome {
    let mut s = s.clone();
    let first = s.domain.active_since.is_none();
    let retired = s.renewal.as_mut().and_then(|r| r.former.take());
    s.domain.active_since = s.domain.active_since.or(Some(now));
    s.domain.public_probe = Some(probe.clone());
    let mut out = Outcome::of(&s, plan::next_of_live(&s, now));
    if let (Some(_), Some(in_use)) = (&retired, &s.certificate) {
        out = out.write(Write::Retire { all_but: in_use.id.clone() });
    }
    let (told, cause) = match first {
        true => ("active", "every counted edge serves the certificate"),
        false => ("renewed", "every counted edge serves the new certificate; the one before it is retired"),
    };
    let detail = json!({"certificate": s.certificate.as_ref().map(|c| c.serial.clone())});
    let out = out.tell(told, "edge", cause, detail);
    let (kind, cause) = if probe.ok {
        ("public_name_ok", "a request through the public name met the stored certificate")
    } else {
        ("public_name_elsewhere", "a request through the public name did not meet the stored certificate")
    };
    out.tell(kind, "nameplate", cause, json!({ "seen": probe.seen }))
}
