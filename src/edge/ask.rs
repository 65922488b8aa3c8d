//! Asking the control plane about a token the book does not have: a CA may be faster than the feed.
//!
//! Anybody can send tokens, so asking is bounded: few at a time and slowly, and one that was unknown is not asked for again for a while.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::env::Env;
use crate::feed::client::FeedClient;
use crate::model::moment::Moment;

/// Questions at a time; more are answered 404 at once.
const AT_ONCE: usize = 8;
/// How long a token stays unknown. CAs try again after seconds.
const UNKNOWN_FOR: Duration = Duration::from_secs(3);
/// How long an answer that there is none takes at least.
const UNKNOWN_TAKES: Duration = Duration::from_millis(100);
/// Unknown tokens remembered.
const REMEMBERED: usize = 4_096;
/// How long a CA is kept waiting.
const PATIENCE: Duration = Duration::from_secs(4);

pub(super) struct Ask {
    client: FeedClient,
    env: Env,
    slots: Semaphore,
    unknown: Mutex<HashMap<String, Moment>>,
}

/// Whether a text can be a token at all (RFC 8555 section 8.3: base64url).
pub(super) fn is_token(text: &str) -> bool {
    (1..=128).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

impl Ask {
    pub(super) fn new(client: FeedClient, env: Env) -> Ask {
        Ask { client, env, slots: Semaphore::new(AT_ONCE), unknown: Mutex::default() }
    }

    /// The answer for a token, if the control plane has one.
    pub(super) async fn key_authorization(&self, token: &str) -> Option<String> {
        if self.is_known_unknown(token) {
            return None;
        }
        let _slot = self.slots.try_acquire().ok()?;
        let answer = tokio::select! {
            answer = self.client.key_authorization(token) => answer,
            () = self.env.sleep(PATIENCE) => return None,
        };
        match answer {
            Ok(Some(text)) => Some(text),
            Ok(None) => {
                self.remember(token);
                // Holding the slot bounds the rate, whatever is sent.
                self.env.sleep(UNKNOWN_TAKES).await;
                None
            }
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "the control plane could not be asked about a token"
                );
                None
            }
        }
    }

    fn is_known_unknown(&self, token: &str) -> bool {
        let unknown = self.unknown.lock().unwrap_or_else(PoisonError::into_inner);
        unknown.get(token).is_some_and(|until| *until > self.env.now())
    }

    fn remember(&self, token: &str) {
        let mut unknown = self.unknown.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.env.now();
        if unknown.len() >= REMEMBERED {
            unknown.retain(|_, until| *until > now);
        }
        if unknown.len() < REMEMBERED {
            unknown.insert(token.to_owned(), now + UNKNOWN_FOR);
        }
    }
}
