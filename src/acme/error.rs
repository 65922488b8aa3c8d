//! What went wrong at a CA, and what follows from it.

use std::fmt;
use std::time::Duration;

use http::Method;

use super::authority::OrderStatus;
use super::excerpt::excerpt;
use super::exchange::{Exchange, Failure, Note};
use super::limited;
use super::problem::ProblemDoc;
use crate::model::evidence::Actor;
use crate::model::moment::Moment;

/// The call that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the resources of RFC 8555 §7.1")]
pub enum Call {
    Directory,
    NewAccount,
    Account,
    KeyChange,
    NewOrder,
    Order,
    RenewalInfo,
    Authorization,
    Challenge,
    Finalize,
    Certificate,
    Revocation,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Call::Directory => "reading the CA's directory",
            Call::NewAccount => "registering the account",
            Call::Account => "reading the account",
            Call::KeyChange => "giving the account another key",
            Call::NewOrder => "placing the order",
            Call::Order => "reading the order",
            Call::RenewalInfo => "asking when the certificate is to be renewed",
            Call::Authorization => "reading the authorizations",
            Call::Challenge => "announcing the challenge",
            Call::Finalize => "finalizing the order",
            Call::Certificate => "downloading the certificate",
            Call::Revocation => "revoking the certificate",
        })
    }
}

/// What kind of failure it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// No connection to the CA.
    Unreached,
    /// A request was sent and no whole answer came.
    Unanswered,
    /// The CA said no (4xx).
    Refused,
    /// The CA failed (5xx).
    Failed,
    /// The CA's answer made no sense.
    Garbled,
    /// The order is not where this step needs it.
    NotThere(OrderStatus),
    /// We could not even ask: what was wrong here.
    Ours(String),
}

/// What to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The same step again, not before this long from now; `None`: after the caller's own backoff.
    RetryAt(Option<Duration>),
    /// Somebody must change something first.
    WaitFor(Actor),
    /// This order comes to nothing.
    GiveUp,
    /// What was made is not there (any more, or on the server that was asked): look again for a while, then give up.
    Missing,
    /// Begin the step again: read what is, then do what is missing. The caller bounds how often.
    StepAgain,
    /// A `newOrder` whose outcome is unknown: the order may exist, its URL is lost, its grant counts as spent.
    Lost,
}

/// The text of a lower layer's error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Cause(String);

/// A failed call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcmeError {
    /// Which call.
    pub call: Call,
    /// What kind of failure.
    pub kind: Kind,
    /// The CA's problem document, whole.
    pub problem: Option<ProblemDoc>,
    /// The HTTP status of the last answer.
    pub status: Option<u16>,
    /// What the last answer's `Retry-After` asked for.
    pub retry_after: Option<Duration>,
    /// Whether the CA may have done what was asked. `false` is certain.
    pub acted_on: bool,
    /// What the layer below said.
    pub cause: Option<Cause>,
}

impl std::error::Error for AcmeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_ref().map(|c| c as _)
    }
}

impl fmt::Display for AcmeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed: ", self.call)?;
        match &self.kind {
            Kind::Unreached => f.write_str("the CA could not be reached")?,
            Kind::Unanswered => f.write_str("the CA gave no whole answer")?,
            Kind::Refused => f.write_str("the CA refused")?,
            Kind::Failed => f.write_str("the CA had a failure of its own")?,
            Kind::Garbled => f.write_str("the CA's answer could not be read")?,
            Kind::NotThere(status) => write!(f, "the order is {status:?}")?,
            Kind::Ours(what) => f.write_str(what)?,
        }
        if let Some(problem) = &self.problem {
            write!(f, ": {problem}")?;
        }
        if let Some(status) = self.status {
            write!(f, " (HTTP {status})")?;
        }
        if let Some(wait) = self.retry_after {
            write!(f, ", to be asked again in {} s", wait.as_secs())?;
        }
        Ok(())
    }
}

impl AcmeError {
    /// Something is wrong on our side; nothing was sent.
    pub(super) fn ours(call: Call, what: String) -> Self {
        Self::bare(call, Kind::Ours(what))
    }

    /// The order is in a state that this step cannot use.
    pub(super) fn not_there(
        call: Call,
        status: OrderStatus,
        problem: Option<ProblemDoc>,
        retry_after: Option<Duration>,
    ) -> Self {
        AcmeError { problem, retry_after, ..Self::bare(call, Kind::NotThere(status)) }
    }

    fn bare(call: Call, kind: Kind) -> Self {
        AcmeError { call, kind, problem: None, status: None, retry_after: None, acted_on: false, cause: None }
    }

    /// From what the library below said and what went over the wire, of which the wire is believed.
    pub(super) fn judge(call: Call, note: &Note, cause: &(dyn std::error::Error + 'static)) -> Self {
        match note.latest() {
            Some(exchange) => Self::from_exchange(call, exchange, Cause(chain_of(cause))),
            None => Self::ours(call, chain_of(cause)),
        }
    }

    fn from_exchange(call: Call, seen: Exchange, cause: Cause) -> Self {
        // Only a POST changes anything at a CA; a directory or a nonce that does not come has no effect.
        let post = seen.method == Method::POST;
        let status = seen.status.map(|s| s.as_u16());
        let problem = if seen.succeeded() { None } else { ProblemDoc::from_body(&seen.body) };
        let (kind, acted_on) = match (seen.failure, status) {
            (Some(Failure::NotSent), _) => (Kind::Unreached, false),
            (Some(Failure::NoAnswer), Some(400..=499)) => (Kind::Refused, false),
            (Some(Failure::NoAnswer), _) | (None, None) => (Kind::Unanswered, post),
            (None, Some(400..=499)) => (Kind::Refused, false),
            (None, Some(500..)) => {
                let limited = problem.as_ref().is_some_and(|p| p.acme_type() == "rateLimited");
                (Kind::Failed, post && !limited)
            }
            // "Look elsewhere" is not "done"; only 303 is an answer to what was asked.
            (None, Some(301 | 302 | 307 | 308)) => (Kind::Garbled, false),
            (None, Some(_)) => (Kind::Garbled, post),
        };
        let explained = problem.is_some();
        let cause = match (&seen.location, excerpt(&seen.body)) {
            (Some(to), _) if (300..400).contains(&status.unwrap_or_default()) => {
                let to: String = to.chars().filter(|c| !c.is_control()).take(160).collect();
                Cause(format!("the answer points to {to:?}, and redirects are not followed"))
            }
            (_, Some(said)) if serde_json::from_slice::<serde_json::Value>(&seen.body).is_err() => {
                Cause(format!("the answer is no ACME document; it reads: {said}"))
            }
            _ => cause,
        };
        AcmeError {
            problem,
            status,
            retry_after: seen.retry_after,
            acted_on,
            cause: (!explained).then_some(cause),
            ..Self::bare(call, kind)
        }
    }

    /// What follows. A pure function of what was seen.
    pub fn class(&self) -> Class {
        if self.call == Call::NewOrder && self.acted_on {
            return Class::Lost;
        }
        let of_a_kind = self.problem.as_ref().is_some_and(|p| !matches!(p.acme_type(), "" | "malformed"));
        if self.kind == Kind::Refused && !of_a_kind && matches!(self.status, Some(404 | 405 | 410)) {
            // Not a word about the order: its URL, or that of a resource in a directory that has changed, leads nowhere.
            return match self.call {
                Call::Directory | Call::NewAccount | Call::NewOrder => Class::RetryAt(self.retry_after),
                _ => Class::Missing,
            };
        }
        match &self.kind {
            Kind::Unreached | Kind::Unanswered | Kind::Failed | Kind::Garbled => match &self.problem {
                Some(problem) => self.of_problem(problem).unwrap_or(Class::RetryAt(self.retry_after)),
                None => Class::RetryAt(self.retry_after),
            },
            Kind::Refused => self
                .problem
                .as_ref()
                .and_then(|p| self.of_problem(p))
                .unwrap_or_else(|| self.of_refusal_without_known_type()),
            Kind::NotThere(OrderStatus::Invalid) => Class::GiveUp,
            Kind::NotThere(_) => Class::RetryAt(self.retry_after),
            Kind::Ours(_) => Class::WaitFor(Actor::Platform),
        }
    }

    /// That a certificate is revoked already is what was wanted.
    pub fn unless_revoked(self) -> Result<(), AcmeError> {
        let already = self.problem.as_ref().is_some_and(|p| p.acme_type() == "alreadyRevoked");
        if already { Ok(()) } else { Err(self) }
    }

    /// By the types of RFC 8555 §6.7, RFC 9773 §5 and the drafts in use.
    fn of_problem(&self, problem: &ProblemDoc) -> Option<Class> {
        Some(match problem.acme_type() {
            "badNonce" | "orderNotReady" => Class::StepAgain,
            // A paused account or name: no time is given and waiting does not help (Let's Encrypt's wording).
            "rateLimited" if self.retry_after.is_none() && problem.detail().contains("temporarily prevented") => {
                Class::WaitFor(Actor::Platform)
            }
            // The order's authorizations no longer allow it; another order gets its own.
            "unauthorized" if self.call == Call::Finalize => Class::GiveUp,
            "rateLimited" | "serverInternal" => Class::RetryAt(self.retry_after),
            "caa" | "connection" | "dns" | "incorrectResponse" | "tls" => Class::WaitFor(Actor::Tenant),
            "accountDoesNotExist"
            | "badPublicKey"
            | "badSignatureAlgorithm"
            | "externalAccountRequired"
            | "invalidContact"
            | "unsupportedContact"
            | "unauthorized"
            | "userActionRequired" => Class::WaitFor(Actor::Platform),
            "alreadyReplaced"
            | "alreadyRevoked"
            | "badCSR"
            | "badRevocationReason"
            | "invalidProfile"
            | "malformed"
            | "rejectedIdentifier"
            | "unsupportedIdentifier" => Class::GiveUp,
            // Several names, several problems: the first that says anything speaks for all.
            "compound" => {
                problem.subproblems().find_map(|p| if p.acme_type() == "compound" { None } else { self.of_problem(&p) })?
            }
            _ => return None,
        })
    }

    fn of_refusal_without_known_type(&self) -> Class {
        match self.status {
            // A refusal in the CA's own form with a type that we do not know; repeating it unchanged is pointless.
            Some(400..=499) if self.status != Some(429) && self.status != Some(408) && self.problem.is_some() => {
                Class::GiveUp
            }
            // Not the CA's form at all: something in between (a proxy, a wall) answered, and may stop doing so.
            _ => Class::RetryAt(self.retry_after),
        }
    }

    /// Whether a limit was hit.
    pub fn is_rate_limited(&self) -> bool {
        self.status == Some(429) || self.problem.as_ref().is_some_and(|p| p.acme_type() == "rateLimited")
    }

    /// Whether the resources that the directory names are not where it said.
    pub(super) fn leads_nowhere(&self) -> bool {
        self.kind == Kind::Unreached || matches!(self.status, Some(301 | 302 | 307 | 308 | 404 | 405 | 410))
    }

    /// When the CA's words, where its headers say nothing, say to come back.
    pub fn told_in_words(&self) -> Option<Moment> {
        self.problem.as_ref().filter(|_| self.is_rate_limited()).and_then(limited::told_in_words)
    }

    /// Whether the CA is the one that is ill: it cannot be reached, does not answer, or fails.
    pub fn is_of_the_ca(&self) -> bool {
        match self.kind {
            Kind::Unreached | Kind::Unanswered | Kind::Garbled => true,
            Kind::Failed => !self.is_rate_limited(),
            Kind::Refused | Kind::NotThere(_) | Kind::Ours(_) => false,
        }
    }

    /// Whether the CA does not know our account, or does not let it do anything any more.
    pub fn is_of_the_account(&self) -> bool {
        let kind = self.problem.as_ref().map(ProblemDoc::acme_type).unwrap_or_default();
        match kind {
            "accountDoesNotExist" | "externalAccountRequired" => true,
            // A single name is refused at other calls; to make an order needs nothing but an account.
            "unauthorized" | "userActionRequired" => matches!(self.call, Call::NewOrder | Call::Account),
            _ => false,
        }
    }

    /// Whether it may be the certificate to replace that the CA objected to, where an order named one: order again without it
    /// (RFC 9773 §5). CAs say so in many ways; what surely means something else is left out.
    pub fn refuses_replaces(&self) -> bool {
        let kind = self.problem.as_ref().map(ProblemDoc::acme_type);
        let other = matches!(
            kind,
            Some(
                "accountDoesNotExist"
                    | "badNonce"
                    | "caa"
                    | "connection"
                    | "dns"
                    | "externalAccountRequired"
                    | "invalidProfile"
                    | "orderNotReady"
                    | "rateLimited"
                    | "rejectedIdentifier"
                    | "serverInternal"
                    | "unsupportedIdentifier"
                    | "userActionRequired"
            )
        );
        let said_no = self.kind == Kind::Refused && !self.acted_on && (kind.is_some() || self.status == Some(409));
        self.call == Call::NewOrder && said_no && !other && !self.is_rate_limited()
    }
}

/// An error and its sources in one line; a source that its outer message repeats is said once.
fn chain_of(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        let said = source.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        next = source.source();
    }
    text
}

#[cfg(test)]
mod tests;
