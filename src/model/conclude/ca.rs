//! What the CA's answers mean.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Conclusion, Draw, successor};
use crate::model::claim::{Claim, ClaimStep};
use crate::model::domain::{Effect, GrantState, Situation};
use crate::model::id::{CertificateId, ChallengeId, GrantId};
use crate::model::issuer::IssuerNews;
use crate::model::ledger;
use crate::model::limits::{Closed, LimitName};
use crate::model::moment::Moment;
use crate::model::order::{Order, OrderState};
use crate::model::outcome::{NewCertificate, Outcome, Refusal, Write};
use crate::model::pace;
use crate::model::plan::{self, Observe};
use crate::model::renewal::{self, Validity};

/// The status of an order or authorization (RFC 8555 §7.1.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the words of the RFC")]
pub enum CaStatus {
    Pending,
    Ready,
    Processing,
    Valid,
    Invalid,
}

/// An HTTP-01 challenge as the CA offers it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the words of the RFC")]
pub struct Challenge {
    pub url: String,
    pub token: String,
    pub key_authorization: String,
}

/// The order's authorization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorizationSeen {
    /// Its status.
    pub status: CaStatus,
    /// Its HTTP-01 challenge, if offered.
    pub http01: Option<Challenge>,
    /// What went wrong, in the CA's words.
    pub problem: Option<String>,
}

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
}

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

/// newOrder was answered with an order; `replaces`: the CA said that it takes it as the replacement of what it names.
pub fn placed(s: &Situation, order: &Order, url: &str, replaces: bool, now: Moment) -> Outcome {
    let named = s.replaces(order).map(str::to_owned);
    let mut out = Outcome::of(s, now).order(order, OrderState::Placed, now, |o| o.url = Some(url.to_owned()));
    if let Some(grant) = &s.grant {
        out = out.write(if replaces && s.is_asked_for(order, now) {
            Write::GrantExempt(grant.id.clone())
        } else if grant.free {
            Write::GrantCharged(grant.id.clone())
        } else {
            Write::GrantCounted(grant.id.clone())
        });
    }
    if named.is_some() && replaces != s.issuer.honours_replaces {
        out = out.write(Write::HonoursReplaces(s.issuer.id.clone(), replaces));
    }
    out.tell(
        "order_placed",
        "nameplate",
        if replaces {
            "the CA took the order as the replacement of the certificate in use"
        } else {
            "the CA took the order"
        },
        json!({"order": order.id, "url": url, "issuer": s.issuer.name, "replaces": named.filter(|_| replaces)}),
    )
}

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

/// The order ends here; the next one waits its time.
fn fail(s: &Situation, order: &Order, said: &str, problem: Option<&str>, now: Moment) -> Outcome {
    let mut out = Outcome::of(s, now).order(order, OrderState::Failed, now, |_| {});
    if let Some(Write::Order { problem: p, .. }) = out.writes.last_mut() {
        *p = Some(problem.map_or_else(|| json!({"detail": said}).to_string(), str::to_owned));
    }
    if let Some(id) = &order.challenge_id {
        out = out.write(Write::RemoveChallenge(id.clone()));
    }
    out.domain.failures += 1;
    out.tell("order_failed", "ca", said, json!({"order": order.id, "url": order.url, "problem": whole(problem)}))
}

/// A problem document as a document, not as a text that holds one.
fn whole(problem: Option<&str>) -> Option<Value> {
    problem.map(|text| serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned())))
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

/// A CA that had failed answers again.
pub fn answered(s: &Situation, out: Outcome) -> Outcome {
    if s.issuer.clouded { out.write(Write::Issuer(s.issuer.id.clone(), IssuerNews::Answers)) } else { out }
}

fn follows(s: &Situation, order: &Order, effect: Option<Effect>, t: &Trouble, now: Moment) -> Outcome {
    if effect == Some(Effect::NewOrder) {
        return order_refused(s, order, t, now);
    }
    let (age, own) = (now.since(order.state_since), backoff(order, now));
    let wait = match t.verdict {
        Verdict::WaitFor | Verdict::GiveUp => None,
        Verdict::StepAgain => Some(own),
        // Replicas lag, and downloads break: an order is not given up, and a certificate not ordered twice, for one look.
        Verdict::Missing if order.state == OrderState::Finalizing => (age < plan::STUCK).then_some(own),
        Verdict::Missing => (age < MISSING).then_some(own),
        // Effects after newOrder are re-read before they are done again, so an answer that never came is only a wait.
        Verdict::RetryAt(Some(told)) => Some(told.min(LONGEST_TOLD)),
        Verdict::RetryAt(None) | Verdict::Lost => Some(own),
    };
    match wait.filter(|_| !plan::is_stuck(order, now)) {
        None => fail(s, order, &t.said, t.problem.as_deref(), now),
        Some(wait) => Outcome::of(s, now + wait).tell("ca_not_answering", "ca", t.said.clone(), json!({"order": order.id})),
    }
}

/// The wait before the CA is asked the same again, where it does not say: longer the longer this lasts.
fn backoff(order: &Order, now: Moment) -> Duration {
    (now.since(order.state_since) / 4).clamp(SHORTEST, LONGEST)
}

const SHORTEST: Duration = Duration::from_secs(2);
const LONGEST: Duration = Duration::from_secs(600);
/// A CA that asks for more than a day while it works is looked at after a day.
const LONGEST_TOLD: Duration = Duration::from_secs(24 * 3600);
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
            let until = now + wait.unwrap_or_else(|| pace::ask_again_in(s.domain.failures + 1));
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
    let told = if let Verdict::RetryAt(wait) = t.verdict { wait } else { None };
    let untold = if limited.closed == Closed::Paused { UNTOLD_PAUSE } else { UNTOLD };
    let numbers = s.issuer.limits.get(&limited.limit);
    // What was told stands in the order's own row, too; what was not is the ledger's to say. Nobody is held at a limit that
    // configuration says is not there: the order waits by itself, and the ledger's row says to people why.
    let until = now + told.unwrap_or_else(|| if numbers.is_some() { Duration::ZERO } else { untold.0 });
    let refusal = Refusal {
        issuer_id: s.issuer.id.clone(),
        limit: limited.limit,
        key: limited.limit.key(&s.domain.hostname).to_owned(),
        closed: limited.closed,
        told,
        untold,
        tolerance: numbers.map(|numbers| numbers.tolerance()).unwrap_or_default(),
        said: t.said.clone(),
        link: limited.link.clone(),
    };
    let mut out = Outcome::of(s, plan::next_look(s))
        .order(order, OrderState::Waiting, now, |o| o.not_before = until)
        .write(Write::GrantReturned(grant.clone(), GrantState::Used));
    // A limit of the name is the tenant's to know of, in the CA's words.
    let open = limited.closed != Closed::Paused;
    if let Some(Write::Order { problem, .. }) =
        out.writes.first_mut().filter(|_| open && limited.limit != LimitName::OrdersPerAccount)
    {
        problem.clone_from(&t.problem);
    }
    out.writes.push(Write::Refused(Box::new(refusal)));
    // Who counts replacements after all gets them at the dispatcher's pace, until one is seen to be taken as such again.
    if s.grant.as_ref().is_some_and(|g| g.free) {
        out.writes.push(Write::HonoursReplaces(s.issuer.id.clone(), false));
    }
    // A tenant reads this too. The words of a pause hold a link that speaks for the whole account: it stands in the ledger, for
    // the operator.
    let said = if open { t.said.as_str() } else { "the CA paused this name until the platform's operator lifts that" };
    out.tell(
        "order_postponed",
        "ca",
        said,
        json!({
            "order": order.id, "limit": limited.limit, "closed": limited.closed,
            "until": told.map(|wait| (now + wait).rfc3339()), "problem": whole(t.problem.as_deref().filter(|_| open)),
        }),
    )
}

/// Our account cannot be used: that is nobody's fault but ours, so the order waits for the operator with all others.
fn account_refused(s: &Situation, order: &Order, grant: &GrantId, t: &Trouble, now: Moment) -> Outcome {
    Outcome::of(s, plan::next_look(s))
        .order(order, OrderState::Waiting, now, |o| o.not_before = now)
        .write(Write::GrantReturned(grant.clone(), GrantState::Used))
        .tell("order_postponed", "ca", t.said.clone(), json!({"order": order.id, "problem": whole(t.problem.as_deref())}))
}

/// The answer to newOrder never came: the row is lost, its spend stays open until its deadline.
pub(super) fn lost(s: &Situation, order: &Order, said: &str, now: Moment) -> Outcome {
    Outcome::of(s, now).order(order, OrderState::Lost, now, |_| {}).tell(
        "order_lost",
        "nameplate",
        said.to_owned(),
        json!({"order": order.id}),
    )
}

/// No progress for too long.
pub(super) fn stuck(s: &Situation, order: &Order, now: Moment) -> Outcome {
    fail(s, order, &format!("the order made no progress since {}", order.state_since), None, now)
}

/// The authorization was read.
pub fn authorization(s: &Situation, order: &Order, seen: &AuthorizationSeen, now: Moment, draw: Draw<'_>) -> Outcome {
    match (seen.status, &seen.http01) {
        (CaStatus::Invalid, _) => fail(s, order, "the CA could not validate the name", seen.problem.as_deref(), now),
        // A reused authorization: nothing to answer, the order itself says whether it is ready.
        (CaStatus::Valid, _) => Outcome::of(s, now)
            .order(order, OrderState::Authorizing, now, |o| o.announced_at = Some(now))
            .note("authorization_reused", "the CA still remembers an earlier validation of this name"),
        (_, None) => fail(s, order, "the CA offers no http-01 challenge for this name", None, now),
        (_, Some(c)) => {
            let id = ChallengeId::mint(now, draw());
            Outcome::of(s, now)
                .order(order, OrderState::Authorizing, now, |o| {
                    o.challenge_url = Some(c.url.clone());
                    o.challenge_id = Some(id.clone());
                })
                .write(Write::PublishChallenge {
                    id,
                    order_id: order.id.clone(),
                    token: c.token.clone(),
                    key_authorization: c.key_authorization.clone(),
                })
                .note("challenge_published", "the CA's token is on its way to the edges")
        }
    }
}

/// The CA was told that the token can be fetched.
pub fn announced(s: &Situation, order: &Order, now: Moment) -> Outcome {
    Outcome::of(s, now + Duration::from_millis(100))
        .order(order, OrderState::Authorizing, now, |o| o.announced_at = Some(now))
        .note("challenge_announced", "every counted edge answers the token; the CA was told to fetch it")
}

/// The order was read while authorizing or finalizing.
pub fn order_status(
    s: &Situation,
    order: &Order,
    status: CaStatus,
    problem: Option<&str>,
    retry_after: Option<Duration>,
    now: Moment,
) -> Conclusion {
    let since = if order.state == OrderState::Authorizing { order.announced_at } else { None }.unwrap_or(order.state_since);
    let rest = || {
        if plan::is_stuck(order, now) {
            return stuck(s, order, now).into();
        }
        let wait = pace::poll_again_in(since, now).max(retry_after.unwrap_or_default().min(LONGEST_TOLD));
        Conclusion::from(Outcome::of(s, now + wait))
    };
    match (order.state, status) {
        (_, CaStatus::Invalid) => fail(s, order, "the CA ended the order without a certificate", problem, now).into(),
        (OrderState::Authorizing, CaStatus::Ready | CaStatus::Processing | CaStatus::Valid) => {
            // Processing and valid: the CSR is with the CA already, from a step whose end was never recorded.
            let next = if status == CaStatus::Ready { OrderState::Ready } else { OrderState::Finalizing };
            let mut out = Outcome::of(s, now).order(order, next, now, |_| {});
            if let Some(id) = &order.challenge_id {
                out = out.write(Write::RemoveChallenge(id.clone()));
            }
            out.tell("order_ready", "ca", "the CA validated the name", json!({"order": order.id})).into()
        }
        (OrderState::Finalizing, CaStatus::Valid) => Conclusion::Observe(Observe::Chain),
        (OrderState::Finalizing, CaStatus::Ready) => Outcome::of(s, now).order(order, OrderState::Ready, now, |_| {}).into(),
        _ => rest(),
    }
}

/// The CSR was sent.
pub fn finalized(s: &Situation, order: &Order, now: Moment) -> Outcome {
    Outcome::of(s, now + Duration::from_millis(50))
        .order(order, OrderState::Finalizing, now, |_| {})
        .note("finalized", "the certificate request was sent")
}

/// A certificate is not served while clocks that are so much behind do not take it yet, where another one is good meanwhile.
const CLOCKS: Duration = Duration::from_secs(3600);

/// What edges serve while the new certificate is brought to them, and when they are told to serve that.
fn hand_on(s: &Situation, certificate: &NewCertificate, now: Moment) -> (Option<CertificateId>, Option<Moment>) {
    let Some(in_use) = s.certificate.as_ref().filter(|_| s.domain.claim == Claim::Live) else { return (None, None) };
    // The one in use may never have been served.
    let waits = s.renewal.as_ref().filter(|r| r.switch_at.is_some()).and_then(|r| r.former.clone());
    let former = waits.unwrap_or_else(|| in_use.id.clone());
    let left = in_use.not_after.since(now);
    let switch_at = (!left.is_zero()).then(|| (certificate.not_before + CLOCKS).clamp(now, now + left / 2));
    (Some(former), switch_at)
}

/// The chain was downloaded and checked against key and names. The first certificate is served at once; one that follows another
/// comes to every edge before that is let go of. `draw`: when the CA is first asked how long it shall last.
pub fn chain(s: &Situation, order: &Order, certificate: NewCertificate, draw: u32, now: Moment) -> Outcome {
    let (former, switch_at) = hand_on(s, &certificate, now);
    let mut out = Outcome::of(s, now);
    if let Ok(claim) = s.domain.claim.after(ClaimStep::GoLive) {
        out.domain.claim = claim;
        out.domain.claim_since = now;
    }
    out.domain.certificate_id = Some(certificate.id.clone());
    if former.is_none() {
        out.domain.active_since = None;
    }
    out.domain.failures = 0;
    let detail = json!({
        "certificate": certificate.id, "serial": certificate.serial, "not_after": certificate.not_after.rfc3339(),
        "issuer": s.issuer.name,
    });
    let id = certificate.id.clone();
    let validity = Validity { not_before: certificate.not_before, not_after: certificate.not_after };
    let schedule = Box::new(renewal::first(&id, validity, draw, now));
    let mut out = out
        .order(order, OrderState::Issued, now, |o| o.certificate_id = Some(id.clone()))
        .write(Write::StoreCertificate { order_id: order.id.clone(), certificate: Box::new(certificate) })
        .write(Write::Renewal { of: id.clone(), schedule, former, switch_at });
    if switch_at.is_none() {
        out = out.write(Write::RouteServe(id));
    }
    let out = out.tell("certificate_stored", "ca", "the chain fits its key and names and is stored; edges are told", detail);
    successor::take_over(s, out, now)
}
