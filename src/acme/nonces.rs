//! The nonces that a CA gave with its answers (RFC 8555 §6.5), kept for the next requests.
//!
//! The client library throws away the nonce of the last answer of each call and asks for one (`newNonce`) before the next.
//! Here every answer's nonce is taken out of it and given to whoever asks for one, so that a CA is asked for a nonce only while
//! more requests are under way than ever before: half of all requests are not made, and the limit that CAs set on `newNonce`,
//! the tightest of all, is not met. A nonce is given once. Those that a CA no longer takes, as after its restart, are all
//! thrown away with the first that it refuses.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::sync::Notify;

use crate::model::moment::Moment;

/// The header that carries a nonce.
pub(super) const REPLAY_NONCE: HeaderName = HeaderName::from_static("replay-nonce");

/// CAs forget nonces; one that is older than this costs less to throw away than to have refused.
const LASTS: Duration = Duration::from_secs(60);
/// More are never kept; as many requests are hardly ever under way.
const MOST: usize = 256;

/// The nonces of one CA.
#[derive(Default)]
pub(super) struct Nonces {
    /// The youngest last.
    kept: Mutex<Vec<(Moment, HeaderValue)>>,
    came: Notify,
}

impl Nonces {
    /// Keeps one that an answer brought.
    pub(super) fn keep(&self, nonce: HeaderValue, now: Moment) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == MOST {
            kept.remove(0);
        }
        kept.push((now, nonce));
        drop(kept);
        self.came.notify_one();
    }

    /// The youngest; it is nobody else's.
    pub(super) fn take(&self, now: Moment) -> Option<HeaderValue> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, nonce) = kept.pop()?;
        if now.since(at) <= LASTS {
            return Some(nonce);
        }
        // What lies beneath is older still.
        kept.clear();
        None
    }

    /// The CA refused one of its own: the others are no better.
    pub(super) fn forget(&self) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Returns when one was kept that nobody waited for before.
    pub(super) async fn came(&self) {
        self.came.notified().await;
    }
}

/// Takes the nonce out of an answer's headers.
pub(super) fn taken(headers: &mut HeaderMap) -> Option<HeaderValue> {
    headers.remove(REPLAY_NONCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nonce(n: usize) -> HeaderValue {
        HeaderValue::from_str(&n.to_string()).unwrap()
    }

    #[test]
    fn each_is_given_once_the_youngest_first_and_never_an_old_one() {
        let nonces = Nonces::default();
        let now = Moment::from_secs(1_000);
        nonces.keep(nonce(1), now);
        nonces.keep(nonce(2), now + Duration::from_secs(30));
        assert_eq!(nonces.take(now + Duration::from_secs(40)), Some(nonce(2)));
        assert_eq!(nonces.take(now + LASTS), Some(nonce(1)));
        assert_eq!(nonces.take(now + LASTS), None);
        nonces.keep(nonce(3), now);
        assert_eq!(nonces.take(now + LASTS + Duration::from_micros(1)), None);
    }

    #[test]
    fn more_than_are_of_use_are_not_kept() {
        let nonces = Nonces::default();
        let now = Moment::from_secs(1_000);
        (0..=MOST).for_each(|n| nonces.keep(nonce(n), now));
        let given: Vec<_> = std::iter::from_fn(|| nonces.take(now)).collect();
        assert_eq!(given.len(), MOST);
        assert!(!given.contains(&nonce(0)), "the oldest is the one that went");
        nonces.keep(nonce(0), now);
        nonces.forget();
        assert_eq!(nonces.take(now), None);
    }
}
