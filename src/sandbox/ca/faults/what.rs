//! What goes wrong.

use std::time::{Duration, SystemTime};

use axum::http::HeaderValue;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::limits::Limit;
use super::place::{At, When};
use super::twist::Twist;
use crate::model::moment::Moment;
use crate::sandbox::ca::problem::Kind;

/// One thing that goes wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Where.
    pub at: At,
    /// Which of the requests there.
    #[serde(default)]
    pub when: When,
    /// What.
    pub what: What,
}

impl Fault {
    /// At the next request there.
    pub fn once(at: impl Into<At>, what: impl Into<What>) -> Self {
        Fault { at: at.into(), when: When::Next(1), what: what.into() }
    }

    /// The same, when it says.
    pub fn when(self, when: When) -> Self {
        Fault { when, ..self }
    }
}

/// The `Retry-After` that goes with an answer (RFC 9110 §10.2.3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryAfter {
    /// So many seconds.
    Seconds(u64),
    /// The date that many seconds ahead.
    Date(u64),
    /// This text, whatever it means.
    Text(String),
}

impl RetryAfter {
    /// The header's value, `now` being the CA's time.
    pub fn value(&self, now: Moment) -> Option<HeaderValue> {
        let text = match self {
            RetryAfter::Seconds(seconds) => seconds.to_string(),
            RetryAfter::Date(ahead) => {
                let since_1970 = u64::try_from(now.secs()).unwrap_or_default().saturating_add(*ahead);
                // HTTP dates end with the year 9999.
                httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_secs(since_1970.min(253_402_300_799)))
            }
            RetryAfter::Text(text) => text.clone(),
        };
        HeaderValue::from_str(&text).ok()
    }

    /// How long it asks to wait, where it says so in a way that a client can follow.
    pub fn wait(&self) -> Option<Duration> {
        match self {
            RetryAfter::Seconds(seconds) | RetryAfter::Date(seconds) => Some(Duration::from_secs(*seconds)),
            RetryAfter::Text(_) => None,
        }
    }
}

/// What goes wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// The nonce is refused; the CA does not act.
    BadNonce,
    /// A limit is passed, in Let's Encrypt's words; the CA does not act.
    Limited {
        /// Which.
        limit: Limit,
        /// When to come back.
        retry_after: Option<RetryAfter>,
    },
    /// A problem document; the CA does not act.
    Refused {
        /// Its type.
        kind: Kind,
        /// Its sentence.
        detail: String,
        /// Its HTTP status, where it is not the type's usual one.
        status: Option<u16>,
        /// When to come back.
        retry_after: Option<RetryAfter>,
    },
    /// A page in HTML, as a proxy in front of a CA shows it; the CA does not act.
    Page {
        /// Its HTTP status.
        status: u16,
        /// When to come back.
        retry_after: Option<RetryAfter>,
    },
    /// A redirect; the CA does not act.
    Redirect {
        /// Where to.
        to: String,
    },
    /// The CA takes its time, then acts.
    Slow {
        /// So many seconds.
        seconds: u64,
    },
    /// The connection is held open and nothing happens.
    Frozen,
    /// The connection breaks before the CA acts.
    DropBefore,
    /// The CA acts, and the connection breaks before a byte of its answer.
    DropAfter,
    /// The CA acts, and holds the answer back for ever.
    FrozenAfter,
    /// The CA acts, and the connection breaks in the middle of its answer.
    CutShort,
    /// The CA acts, and its answer ends in the middle as if it were whole.
    HalfDocument,
    /// The CA acts, and its answer is drowned in megabytes of blanks.
    Huge,
    /// The CA acts, and a page in HTML stands where its answer should be, with the answer's status and headers.
    Garbled,
    /// The CA acts, and its answer gives no nonce.
    NoNonce,
    /// The CA acts, and a member of its answer's document is another, or not there.
    Altered {
        /// The member.
        member: String,
        /// What it is; nothing takes it out.
        value: Option<Value>,
    },
    /// The CA's books are not what they should be.
    Books(Twist),
}

impl From<Twist> for What {
    fn from(twist: Twist) -> Self {
        What::Books(twist)
    }
}

impl What {
    /// A limit without a time.
    pub fn limited(limit: Limit) -> Self {
        What::Limited { limit, retry_after: None }
    }

    /// A limit until so many seconds from then.
    pub fn limited_for(limit: Limit, seconds: u64) -> Self {
        What::Limited { limit, retry_after: Some(RetryAfter::Seconds(seconds)) }
    }

    /// A problem document with its type's usual status.
    pub fn refused(kind: Kind, detail: &str) -> Self {
        What::Refused { kind, detail: detail.to_owned(), status: None, retry_after: None }
    }

    /// A page with this status.
    pub fn page(status: u16) -> Self {
        What::Page { status, retry_after: None }
    }

    /// The answer without this member.
    pub fn without(member: &str) -> Self {
        What::Altered { member: member.to_owned(), value: None }
    }

    /// The answer with this member.
    pub fn with(member: &str, value: impl Into<Value>) -> Self {
        What::Altered { member: member.to_owned(), value: Some(value.into()) }
    }

    /// Its name, as JSON has it.
    pub fn name(&self) -> &'static str {
        match self {
            What::BadNonce => "bad_nonce",
            What::Limited { .. } => "limited",
            What::Refused { .. } => "refused",
            What::Page { .. } => "page",
            What::Redirect { .. } => "redirect",
            What::Slow { .. } => "slow",
            What::Frozen => "frozen",
            What::DropBefore => "drop_before",
            What::DropAfter => "drop_after",
            What::FrozenAfter => "frozen_after",
            What::CutShort => "cut_short",
            What::HalfDocument => "half_document",
            What::Huge => "huge",
            What::Garbled => "garbled",
            What::NoNonce => "no_nonce",
            What::Altered { .. } => "altered",
            What::Books(twist) => twist.name(),
        }
    }
}
