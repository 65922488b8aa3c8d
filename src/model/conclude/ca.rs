//! What the CA's answers mean.

use std::time::Duration;

use serde_json::{Value, json};

use super::trouble::backoff;
use super::{Conclusion, Draw, successor};
use crate::model::claim::{Claim, ClaimStep};
use crate::model::domain::{Effect, Situation};
use crate::model::id::{CertificateId, ChallengeId};
use crate::model::issuer::{IssuerNews, LONGEST_TOLD, Oddity};
use crate::model::moment::Moment;
use crate::model::order::{Order, OrderState};
use crate::model::outcome::{NewCertificate, Outcome, Write};
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

/// The order ends here; the next one waits its time.
pub(super) fn fail(s: &Situation, order: &Order, said: &str, problem: Option<&str>, now: Moment) -> Outcome {
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
pub(super) fn whole(problem: Option<&str>) -> Option<Value> {
    problem.map(|text| serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned())))
}

/// A CA that had failed answers again.
pub fn answered(s: &Situation, out: Outcome) -> Outcome {
    if s.issuer.clouded { out.write(Write::Issuer(s.issuer.id.clone(), IssuerNews::Answers)) } else { out }
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
        (_, None) => {
            let said = "the CA offers no http-01 challenge for this name";
            let news = IssuerNews::Odd(Oddity::ChallengeTypeMissing, format!("{said}: {}", s.domain.hostname));
            fail(s, order, said, None, now).write(Write::Issuer(s.issuer.id.clone(), news))
        }
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
                .write(Write::Issuer(s.issuer.id.clone(), IssuerNews::Usual(Oddity::ChallengeTypeMissing)))
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
        // The CSR never came, or what was begun was dropped. It is handed in again without leaving the state that says that it may
        // be there: a lagging replica may say so of an order that is being issued.
        (OrderState::Finalizing, CaStatus::Ready) if !plan::is_stuck(order, now) && now.since(since) >= HAND_IN_AGAIN => {
            Conclusion::Act(Effect::Finalize)
        }
        _ => rest(),
    }
}

/// How long an order that takes the CSR, though it was sent, is given to notice it.
const HAND_IN_AGAIN: Duration = Duration::from_secs(2);

/// The CSR was sent; where that was not the first time, the order is read less and less often.
pub fn finalized(s: &Situation, order: &Order, now: Moment) -> Outcome {
    let again = order.state == OrderState::Finalizing;
    Outcome::of(s, now + if again { backoff(order, now) } else { Duration::from_millis(50) })
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
        .write(Write::Renewal { of: id.clone(), schedule, former, switch_at })
        .write(Write::Issuer(s.issuer.id.clone(), IssuerNews::Usual(Oddity::ClockDiffers)));
    if switch_at.is_none() {
        out = out.write(Write::RouteServe(id));
    }
    let out = out.tell("certificate_stored", "ca", "the chain fits its key and names and is stored; edges are told", detail);
    successor::take_over(s, out, now)
}
