//! What really went over the wire in one call.
//!
//! `instant-acme` drops headers, whole problem documents and the URL of an order whose answer it dislikes. Each call therefore
//! runs inside [`recorded`], where the HTTP client leaves a note of the latest request and its answer. The note is bound to the
//! task, so calls that run side by side on one account do not mix.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{Method, StatusCode};
use hyper::body::Bytes;

/// The latest request of a call and what became of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Exchange {
    pub(super) method: Method,
    /// Status and headers of the answer, even when its body never came whole.
    pub(super) status: Option<StatusCode>,
    pub(super) retry_after: Option<Duration>,
    pub(super) location: Option<String>,
    pub(super) body: Bytes,
    /// Why no whole answer came.
    pub(super) failure: Option<Failure>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// No connection: the CA never saw the request.
    NotSent,
    /// The request may have arrived.
    NoAnswer,
}

impl Exchange {
    pub(super) fn succeeded(&self) -> bool {
        self.failure.is_none() && self.status.is_some_and(|s| s.is_success())
    }
}

/// The note of one call.
#[derive(Clone, Debug, Default)]
pub(super) struct Note(Arc<Mutex<Option<Exchange>>>);

impl Note {
    fn set(&self, exchange: Exchange) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(exchange);
    }

    /// The latest exchange; `None` before the first request.
    pub(super) fn latest(&self) -> Option<Exchange> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The latest answer's body.
    pub(super) fn body(&self) -> Bytes {
        self.latest().map(|e| e.body).unwrap_or_default()
    }

    /// What the latest answer's `Retry-After` asked for.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        self.latest().and_then(|e| e.retry_after)
    }
}

tokio::task_local! {
    static NOTE: Note;
}

/// Runs one call with its note.
pub(super) async fn recorded<T>(note: &Note, call: impl Future<Output = T>) -> T {
    NOTE.scope(note.clone(), call).await
}

/// Leaves a note of an exchange, when somebody wants one.
pub(super) fn leave(exchange: Exchange) {
    // Outside a recorded call nobody asks, so nothing is lost.
    let _ = NOTE.try_with(|note| note.set(exchange));
}
