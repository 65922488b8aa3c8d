//! Requests that make something, and may be sent again (draft-ietf-httpapi-idempotency-key).
//!
//! With an `Idempotency-Key` the answer is kept for a day, sealed, for it may hold a secret. The key's row is written in the
//! transaction that does what is asked: after a crash either both are there or neither. The same key with the same request
//! gets the same answer; with another it is refused; and while the first is under way, the second is told to come back.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_lc_rs::digest::{Context as Digest, SHA256};
use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::freshness::Version;
use super::pace::Gate;
use super::problem::Problem;
use super::state::WebState;
use super::{body, input};
use crate::app::tokens::Caller;
use crate::model::secret::Secret;
use crate::store::{Tx, kept_answers};
use crate::vault::{Context, Sealed};

/// The header.
pub(super) const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// Tells that an answer was given before.
pub(super) const REPLAYED: &str = "idempotency-replayed";
/// How long an answer is kept.
const KEPT: Duration = Duration::from_secs(24 * 3600);

/// The keys under which something is under way in this process, by principal.
#[derive(Clone, Default)]
pub(super) struct Flights(Arc<Mutex<HashSet<(String, String)>>>);

/// One of them, until it is dropped.
struct Flight {
    flights: Flights,
    name: (String, String),
}

impl Flights {
    fn begin(&self, principal: &str, key: &str) -> Option<Flight> {
        let name = (principal.to_owned(), key.to_owned());
        let new = self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone());
        new.then(|| Flight { flights: self.clone(), name })
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.flights.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.name);
    }
}

/// A request to make something: its body, and the key it may carry.
pub(super) struct Once<T> {
    /// What was sent.
    pub wanted: T,
    keyed: Option<Keyed>,
}

struct Keyed {
    key: String,
    request: Vec<u8>,
    flights: Flights,
}

impl<T: DeserializeOwned> FromRequest<WebState> for Once<T> {
    type Rejection = Problem;
    async fn from_request(request: Request, state: &WebState) -> Result<Self, Problem> {
        let (parts, sent) = request.into_parts();
        let key = key_of(&parts.headers)?;
        input::check_json(&parts.headers)?;
        let bytes = body::read(sent, state).await?;
        let wanted = input::read_json(&bytes)?;
        let gate = parts.extensions.get::<Gate>();
        let keyed = key.zip(gate).map(|(key, gate)| Keyed {
            key,
            request: digest_of(parts.method.as_str(), parts.uri.path(), &bytes),
            flights: gate.pace.flights.clone(),
        });
        Ok(Once { wanted, keyed })
    }
}

/// The key: a text of visible characters, with or without the quotes of a structured field.
pub(super) fn key_of(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut given = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(value) = given.next() else { return Ok(None) };
    let text = value.to_str().unwrap_or_default().trim();
    let key = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(text);
    let sane =
        (1..=255).contains(&key.len()) && key.bytes().all(|b| (0x21..=0x7e).contains(&b) && !matches!(b, b'"' | b'\\'));
    if sane && given.next().is_none() {
        return Ok(Some(key.to_owned()));
    }
    let detail = "Idempotency-Key must be one text of 1 to 255 visible ASCII characters without quotes and backslashes, such as a UUID.";
    Err(Problem::new(StatusCode::BAD_REQUEST, "idempotency_key_invalid", "The Idempotency-Key is not readable", detail))
}

/// Parts of one request, each with its length before it, so that no two requests read alike.
fn digest_of(method: &str, path: &str, body: &Bytes) -> Vec<u8> {
    let mut digest = Digest::new(&SHA256);
    for part in [method.as_bytes(), path.as_bytes(), body] {
        digest.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        digest.update(part);
    }
    digest.finish().as_ref().to_vec()
}

/// An answer that can be given again.
#[derive(Serialize, Deserialize)]
struct Kept {
    status: u16,
    location: Option<String>,
    version: Option<i64>,
    body: String,
}

impl Kept {
    fn answer(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::OK);
        let mut response = (status, [(header::CONTENT_TYPE, "application/json")], self.body).into_response();
        if let Some(location) = self.location.and_then(|location| HeaderValue::from_str(&location).ok()) {
            response.headers_mut().insert(header::LOCATION, location);
        }
        if let Some(version) = self.version {
            response.extensions_mut().insert(Version(version));
        }
        response
    }
}

/// Whether the work is still to be done.
pub(super) enum Begun {
    /// It was done before: this is the answer.
    Before(Response),
    /// It is to be done in this transaction.
    Now(Box<Work>),
}

/// The transaction in which something is made. Dropped before its end it leaves nothing, and the key is free again.
pub(super) struct Work {
    /// The transaction.
    pub tx: Tx,
    state: WebState,
    kept: Option<(String, String, Flight)>,
}

impl<T> Once<T> {
    /// Takes the key for this caller and opens the transaction.
    pub(super) async fn begin(self, state: &WebState, caller: &Caller) -> Result<(T, Begun), Problem> {
        let Once { wanted, keyed } = self;
        let Some(Keyed { key, request, flights }) = keyed else {
            let work = Work { tx: state.app.store.begin().await?, state: state.clone(), kept: None };
            return Ok((wanted, Begun::Now(Box::new(work))));
        };
        let principal = caller.principal.key().to_owned();
        let flight = flights.begin(&principal, &key).ok_or_else(in_flight)?;
        let now = state.app.env.now();
        let mut tx = state.app.store.begin().await?;
        if tx.execute(kept_answers::take(&principal, &key, &request, now, now + KEPT)).await? == 1 {
            let work = Work { tx, state: state.clone(), kept: Some((principal, key, flight)) };
            return Ok((wanted, Begun::Now(Box::new(work))));
        }
        let (known, answer) = kept_answers::lookup(&mut tx, &principal, &key).await?.ok_or_else(in_flight)?;
        if known != request {
            return Err(reused());
        }
        let sealed = answer.ok_or_else(in_flight)?;
        Ok((wanted, Begun::Before(replay(state, &principal, &key, &sealed)?)))
    }
}

/// The first request with this key is under way.
pub(super) fn in_flight() -> Problem {
    let detail = "A request with this Idempotency-Key is under way. Ask again in a moment for its answer.";
    Problem::new(StatusCode::CONFLICT, "idempotency_in_flight", "The first request is under way", detail)
        .after(Duration::from_secs(1))
}

/// This key stands for another request.
pub(super) fn reused() -> Problem {
    let detail = "This Idempotency-Key was used with another request. Use a new key for a new request.";
    let status = StatusCode::UNPROCESSABLE_ENTITY;
    Problem::new(status, "idempotency_key_reused", "The key stands for another request", detail)
}

fn context(principal: &str, key: &str) -> Context {
    Context::new("kept answer", &format!("{principal} {key}"))
}

fn replay(state: &WebState, principal: &str, key: &str, sealed: &[u8]) -> Result<Response, Problem> {
    let app = &state.app;
    let opened = || -> Result<Secret, crate::app::AppError> {
        let sealed = Sealed::try_from(sealed.to_vec())?;
        Ok(app.vault.open(&context(principal, key), &sealed)?)
    };
    let opened = opened()?;
    let kept: Kept = serde_json::from_slice(opened.expose()).map_err(|_| Problem::failed())?;
    let mut response = kept.answer();
    response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    Ok(response)
}

impl Work {
    /// Writes the answer beside what was done, makes both durable, and answers.
    pub(super) async fn done(
        self: Box<Self>,
        status: StatusCode,
        location: Option<String>,
        version: Option<i64>,
        document: &impl Serialize,
    ) -> Result<Response, Problem> {
        let Work { mut tx, state, kept } = *self;
        let body = serde_json::to_string(document).map_err(|_| Problem::failed())?;
        let answer = Kept { status: status.as_u16(), location, version, body };
        if let Some((principal, key, _flight)) = &kept {
            let text = Secret::new(serde_json::to_vec(&answer).map_err(|_| Problem::failed())?);
            let app = &state.app;
            let sealed = app.vault.seal(&app.env, &context(principal, key), &text).map_err(crate::app::AppError::from)?;
            tx.execute(kept_answers::keep(principal, key, sealed.as_bytes())).await?;
        }
        tx.commit().await?;
        Ok(answer.answer())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_key_is_read_as_it_was_sent_or_refused(bytes in proptest::collection::vec(0x20_u8..=0xff, 0..300)) {
            let Ok(value) = HeaderValue::from_bytes(&bytes) else { return Ok(()) };
            let headers = HeaderMap::from_iter([(IDEMPOTENCY_KEY.parse::<header::HeaderName>().unwrap(), value)]);
            if let Ok(key) = key_of(&headers) {
                let key = key.unwrap();
                prop_assert!((1..=255).contains(&key.len()) && key.bytes().all(|b| b.is_ascii_graphic()));
                prop_assert!(String::from_utf8_lossy(&bytes).contains(&key));
            }
        }
    }

    #[test]
    fn keys_are_visible_texts_with_or_without_quotes() {
        let of = |values: &[&[u8]]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(IDEMPOTENCY_KEY, HeaderValue::from_bytes(value).unwrap());
            }
            key_of(&headers).map_err(|problem| format!("{problem:?}"))
        };
        assert_eq!(of(&[]), Ok(None));
        assert_eq!(of(&[b"8e03978e-40d5"]), Ok(Some("8e03978e-40d5".into())));
        assert_eq!(of(&[b"\"8e03978e-40d5\""]), Ok(Some("8e03978e-40d5".into())));
        let long = [b'k'; 256];
        for strange in [&[&b""[..]] as &[&[u8]], &[b"\"\""], &[b"a b"], &[b"\xff"], &[b"a\\b"], &[b"a", b"a"], &[&long]] {
            assert!(of(strange).unwrap_err().contains("idempotency_key_invalid"), "{strange:?}");
        }
    }

    #[test]
    fn requests_that_differ_anywhere_have_other_digests() {
        let body = |text: &'static str| Bytes::from_static(text.as_bytes());
        let all = [("POST", "/a", "b"), ("POST", "/ab", ""), ("PUT", "/a", "b"), ("POST", "/a", "c"), ("POST", "/", "ab")];
        let digests: HashSet<Vec<u8>> = all.iter().map(|(m, p, b)| digest_of(m, p, &body(b))).collect();
        assert_eq!(digests.len(), all.len());
    }
}
