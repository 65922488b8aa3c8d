//! What follows from an answer of the CA that was not the wanted one.
//!
//! Before the CSR is handed in a refusal ends an order, which costs nothing but another one. From then on the certificate may
//! exist, and only the CA's own word that the order is invalid ends it: whatever else is said at whichever resource (a key that
//! the CA does not know just then, a page of something in between, a download that is not ours) is waited out, for as long as
//! [`STUCK_FINALIZING`](plan::STUCK_FINALIZING), since a second certificate is worse than a late one.

use std::time::Duration;

use serde_json::json;

use super::ca::{fail, lost, whole};
use crate::model::domain::{Effect, GrantState, Situation};
use crate::model::id::GrantId;
use crate::model::issuer::{IssuerNews, LONGEST_TOLD};
use crate::model::ledger;
use crate::model::limits::{Closed, LimitName};
use crate::model::moment::Moment;
use crate::model::order::{Order, OrderState};
use crate::model::outcome::{Outcome, Refusal, Write};
use crate::model::pace;
use crate::model::plan;

/// What to do after an answer that was not the wanted one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Surely not acted on; the same step may be taken again in a moment (bad nonce).
    StepAgain,
    /// Not now; the CA may have said when.
    RetryAt(Option<Duration>),
    /// Not before somebody changed something.
    WaitFor,
    /// Never with this order.
    GiveUp,
    /// What should be there is not, or not whole; it may be in a while.
    Missing,
    /// No answer came; the CA may have acted.
    Lost,
}

/// An answer that was not the wanted one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// What to do.
    pub verdict: Verdict,
    /// What it tells of the CA, or of our account there.
    pub news: Option<IssuerNews>,
    /// The limit that was hit, if one was.
    pub limited: Option<Limited>,
    /// Whether it may be the certificate to replace, where an order named one, that the CA objected to.
    pub of_replaces: bool,
    /// One line for people.
    pub said: String,
    /// The problem document, whole.
    pub problem: Option<String>,
    /// Whether the CA may have done what the step was for, so that this is no refusal of it.
    pub acted_on: bool,
}

impl Trouble {
    /// Whether it says something of our account, and nothing of the name.
    fn is_of_the_account(&self) -> bool {
        matches!(self.news, Some(IssuerNews::Halted(_) | IssuerNews::InDoubt(_)))
    }

    /// Whether the name was paused.
    fn is_a_pause(&self) -> bool {
        self.limited.as_ref().is_some_and(|l| l.closed == Closed::Paused)
    }

    /// What a tenant may read of it. The words of a pause hold a link that speaks for the whole account: it stands in the ledger,
    /// for the operator.
    fn for_the_tenant(&self) -> (&str, Option<&str>) {
        if self.is_a_pause() { (PAUSED, None) } else { (&self.said, self.problem.as_deref()) }
    }
}

const PAUSED: &str = "the CA paused this name until the platform's operator lifts that";

/// A limit that the CA says is used up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limited {
    /// Which.
    pub limit: LimitName,
    /// What it means.
    pub closed: Closed,
    /// Where the CA says more, or lets the operator lift it.
    pub link: Option<String>,
}

/// The first wait where a CA limits us without saying for how long, and the longest.
const UNTOLD: (Duration, Duration) = (Duration::from_secs(3600), Duration::from_secs(7 * DAY));
/// The same for a name that the CA paused: asking does not help before somebody visited its page.
const UNTOLD_PAUSE: (Duration, Duration) = (Duration::from_secs(DAY), Duration::from_secs(30 * DAY));
const DAY: u64 = 86_400;

/// The CA does not take what the order names as something to be replaced: it is ordered like anything else, and waits for its turn.
fn replaces_refused(s: &Situation, order: &Order, grant: &GrantId, t: &Trouble, now: Moment) -> Outcome {
    Outcome::of(s, now)
        .order(order, OrderState::Waiting, now, |o| o.not_before = now)
        .write(Write::GrantReturned(grant.clone(), GrantState::Used))
        .write(Write::ReplacesRefused)
        .tell(
            "replaces_refused",
            "ca",
            "the CA does not take the certificate in use as one to be replaced; an order like any other waits for its turn",
            json!({"order": order.id, "said": t.said, "problem": whole(t.problem.as_deref())}),
        )
}

/// An answer that was not the wanted one, at `effect` or while reading (`None`).
pub fn trouble(s: &Situation, order: &Order, effect: Option<Effect>, t: &Trouble, now: Moment) -> Outcome {
    let mut out = follows(s, order, effect, t, now);
    // What was objected to was the name of a certificate, and not our account.
    let of_replaces = effect == Some(Effect::NewOrder) && t.of_replaces && s.replaces(order).is_some();
    let news = t.news.clone().filter(|_| !of_replaces);
    out.writes.extend(news.map(|news| Write::Issuer(s.issuer.id.clone(), news)));
    out
}

fn follows(s: &Situation, order: &Order, effect: Option<Effect>, t: &Trouble, now: Moment) -> Outcome {
    if effect == Some(Effect::NewOrder) {
        return order_refused(s, order, t, now);
    }
    let (age, own) = (now.since(order.state_since), backoff(order, now));
    let sent = csr_is_sent(s, order, effect, t);
    let wait = match t.verdict {
        Verdict::RetryAt(Some(told)) => Some(told.min(LONGEST_TOLD)),
        // Effects after newOrder are re-read before they are done again, so an answer that never came is only a wait.
        // Who is limited without being told for how long asks no sooner than the others that share the limit.
        Verdict::RetryAt(None) if t.limited.is_some() => Some(own.max(LIMITED)),
        Verdict::RetryAt(None) | Verdict::Lost | Verdict::StepAgain => Some(own),
        Verdict::WaitFor | Verdict::GiveUp | Verdict::Missing if sent => Some(own),
        // Replicas lag: an order is not given up for one look.
        Verdict::Missing => (age < MISSING).then_some(own),
        // What is wrong with our account is nobody's fault but ours: no name fails for it.
        Verdict::WaitFor | Verdict::GiveUp => t.is_of_the_account().then_some(own),
    };
    let over = if sent { age > plan::STUCK_FINALIZING } else { plan::is_stuck(order, now) };
    let (said, problem) = t.for_the_tenant();
    let mut out = match wait.filter(|_| !over) {
        None => fail(s, order, said, problem, now),
        Some(wait) => {
            let mut out = Outcome::of(s, now + wait);
            if sent && order.state != OrderState::Finalizing {
                out = out.order(order, OrderState::Finalizing, now, |_| {});
            }
            out.tell("ca_not_answering", "ca", said, json!({"order": order.id, "problem": whole(problem)}))
        }
    };
    if let Some(limited) = &t.limited {
        out = out.write(Write::Refused(Box::new(refusal(s, t, limited))));
    }
    out
}

/// Whether the CSR is with the CA, or may be: its certificate may exist.
fn csr_is_sent(s: &Situation, order: &Order, effect: Option<Effect>, t: &Trouble) -> bool {
    // A worker that died may have handed it in before this one read the order.
    let before = || s.intent.as_ref().is_some_and(|i| i.effect == Effect::Finalize);
    order.state == OrderState::Finalizing || effect == Some(Effect::Finalize) && (t.acted_on || before())
}

/// The wait before the CA is asked the same again, where it does not say: longer the longer this lasts.
pub(super) fn backoff(order: &Order, now: Moment) -> Duration {
    (now.since(order.state_since) / 4).clamp(SHORTEST, LONGEST)
}

const SHORTEST: Duration = Duration::from_secs(2);
const LONGEST: Duration = Duration::from_secs(600);
/// The shortest wait of an order that the CA limits without saying for how long.
const LIMITED: Duration = Duration::from_secs(60);
/// How long an order that the CA does not know is looked for before its certificate could have been made.
const MISSING: Duration = Duration::from_secs(60);

fn order_refused(s: &Situation, order: &Order, t: &Trouble, now: Moment) -> Outcome {
    let Some(grant) = &s.grant else { return Outcome::of(s, now) };
    if t.of_replaces && s.replaces(order).is_some() {
        return replaces_refused(s, order, &grant.id, t, now);
    }
    if let Some(limited) = &t.limited {
        return limit_reached(s, order, &grant.id, t, limited, now);
    }
    if matches!(t.news, Some(IssuerNews::Halted(_))) {
        return account_refused(s, order, &grant.id, t, now);
    }
    match t.verdict {
        Verdict::StepAgain => {
            let mut out = Outcome::of(s, now + pace::ask_again_in(s.domain.failures + 1))
                .write(Write::GrantAgain(grant.id.clone(), now + ledger::GRANT_LIFE))
                .tell("order_step_again", "ca", t.said.clone(), json!({"order": order.id}));
            out.domain.failures += 1;
            out
        }
        Verdict::RetryAt(wait) => {
            let wait = wait.map_or_else(|| pace::ask_again_in(s.domain.failures + 1), |told| told.min(LONGEST_TOLD));
            let until = now + wait;
            let mut out = Outcome::of(s, until)
                .order(order, OrderState::Waiting, now, |o| o.not_before = until)
                .write(Write::GrantReturned(grant.id.clone(), GrantState::Used));
            // What the CA refuses the name for is the tenant's to know of, in the CA's words.
            if let Some(Write::Order { problem, .. }) = out.writes.first_mut() {
                problem.clone_from(&t.problem);
            }
            out.domain.failures += 1;
            out.tell(
                "order_postponed",
                "ca",
                t.said.clone(),
                json!({"order": order.id, "until": until.rfc3339(), "problem": whole(t.problem.as_deref())}),
            )
        }
        Verdict::WaitFor | Verdict::GiveUp | Verdict::Missing => {
            fail(s, order, &t.said, t.problem.as_deref(), now).write(Write::GrantCounted(grant.id.clone()))
        }
        // A CA that lets calls hang must not be given one grant after the other for the same name.
        Verdict::Lost => {
            let mut out = lost(s, order, &t.said, now);
            out.domain.failures += 1;
            out
        }
    }
}

/// The CA's own counting is ahead of ours: its row is closed, and the order waits with all others that share it. Nobody's name
/// failed, so nothing is counted against this one.
fn limit_reached(s: &Situation, order: &Order, grant: &GrantId, t: &Trouble, limited: &Limited, now: Moment) -> Outcome {
    let refusal = refusal(s, t, limited);
    // What was told stands in the order's own row, too; what was not is the ledger's to say, but for a limit that configuration says
    // is not there: how long its row is closed is not known before it is written.
    let counted = s.issuer.limits.contains_key(&limited.limit);
    let (told, until) =
        (refusal.told, now + refusal.told.unwrap_or(if counted { Duration::ZERO } else { refusal.untold.0 }));
    let mut out = Outcome::of(s, plan::next_look(s))
        .order(order, OrderState::Waiting, now, |o| o.not_before = until)
        .write(Write::GrantReturned(grant.clone(), GrantState::Used));
    let (said, problem) = t.for_the_tenant();
    // A limit of the name is the tenant's to know of, in the CA's words.
    if let Some(Write::Order { problem: kept, .. }) =
        out.writes.first_mut().filter(|_| limited.limit != LimitName::OrdersPerAccount)
    {
        *kept = problem.map(str::to_owned);
    }
    out.writes.push(Write::Refused(Box::new(refusal)));
    // Who counts replacements after all gets them at the dispatcher's pace, until one is seen to be taken as such again.
    if s.grant.as_ref().is_some_and(|g| g.free) {
        out.writes.push(Write::HonoursReplaces(s.issuer.id.clone(), false));
    }
    out.tell(
        "order_postponed",
        "ca",
        said,
        json!({
            "order": order.id, "limit": limited.limit, "closed": limited.closed,
            "until": told.map(|wait| (now + wait).rfc3339()), "problem": whole(problem),
        }),
    )
}

/// The row of the ledger that the CA's words close, wherever they were said.
fn refusal(s: &Situation, t: &Trouble, limited: &Limited) -> Refusal {
    Refusal {
        issuer_id: s.issuer.id.clone(),
        limit: limited.limit,
        key: limited.limit.key(&s.domain.hostname).to_owned(),
        closed: limited.closed,
        told: if let Verdict::RetryAt(wait) = t.verdict { wait } else { None },
        untold: if limited.closed == Closed::Paused { UNTOLD_PAUSE } else { UNTOLD },
        tolerance: s.issuer.limits.get(&limited.limit).map(|numbers| numbers.tolerance()).unwrap_or_default(),
        said: t.said.clone(),
        link: limited.link.clone(),
    }
}

/// Our account cannot be used: that is nobody's fault but ours, so the order waits for the operator with all others.
fn account_refused(s: &Situation, order: &Order, grant: &GrantId, t: &Trouble, now: Moment) -> Outcome {
    Outcome::of(s, plan::next_look(s))
        .order(order, OrderState::Waiting, now, |o| o.not_before = now)
        .write(Write::GrantReturned(grant.clone(), GrantState::Used))
        .tell("order_postponed", "ca", t.said.clone(), json!({"order": order.id, "problem": whole(t.problem.as_deref())}))
}
