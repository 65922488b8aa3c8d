//! A question that only the control plane can put and only an edge can answer, with nothing published and nothing remembered.
//!
//! Before an order the control plane asks whether requests for a name reach an edge of ours, as the CA will: by an HTTP-01 path.
//! The token of that path is a nonce and a tag over it; the answer is another tag over the same nonce. Both are made with a key
//! that comes out of the distribution key, which every edge has and nobody else. So an edge answers for hostnames it has never
//! heard of, keeps no list, and says nothing to strangers: a token that the control plane did not make is one like any other
//! that is not known.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac::{self, HMAC_SHA256};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::DistributionKey;
use crate::env::Env;

/// What every token of a preflight begins with, so that whoever finds one in a log knows what it was.
const MARK: &str = "nameplate-preflight-";
const NONCE: usize = 16;
/// Bytes of the question's tag: enough that nobody guesses one.
const TAG: usize = 16;

/// Asks and answers for the holders of one distribution key.
pub struct Preflight(hmac::Key);

/// A question and its only answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The last segment of the HTTP-01 path to ask for.
    pub token: String,
    /// The body that an edge answers with.
    pub answer: String,
}

impl Preflight {
    /// What follows from a distribution key.
    pub fn of(key: &DistributionKey) -> Self {
        let derived = hmac::sign(&hmac::Key::new(HMAC_SHA256, key.key.expose()), b"nameplate preflight v1");
        Preflight(hmac::Key::new(HMAC_SHA256, derived.as_ref()))
    }

    /// A new question.
    pub fn ask(&self, env: &Env) -> Question {
        let nonce = env.draw::<NONCE>();
        let token = format!("{MARK}{}", URL_SAFE_NO_PAD.encode([&nonce[..], &self.tag(b"ask", &nonce)[..TAG]].concat()));
        Question { answer: self.said(&token, &nonce), token }
    }

    /// The answer to a token, if the control plane made it with this key.
    pub fn answer(&self, token: &str) -> Option<String> {
        let bytes = URL_SAFE_NO_PAD.decode(token.strip_prefix(MARK)?).ok()?;
        let (nonce, tag) = bytes.split_at_checked(NONCE)?;
        verify_slices_are_equal(tag, &self.tag(b"ask", nonce)[..TAG]).ok()?;
        Some(self.said(token, nonce))
    }

    fn said(&self, token: &str, nonce: &[u8]) -> String {
        format!("{token}.{}", URL_SAFE_NO_PAD.encode(self.tag(b"answer", nonce)))
    }

    fn tag(&self, purpose: &[u8], nonce: &[u8]) -> Vec<u8> {
        hmac::sign(&self.0, &[purpose, b"\0", nonce].concat()).as_ref().to_vec()
    }
}

/// Whether a token looks like one of a preflight.
pub fn is_preflight(token: &str) -> bool {
    token.starts_with(MARK)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::env::manual::Hand;
    use crate::model::moment::Moment;

    fn env(seed: u64) -> Env {
        Hand::new(Moment::default(), seed).env()
    }

    fn preflight(seed: u64) -> Preflight {
        Preflight::of(&DistributionKey::generate(&env(seed)))
    }

    #[test]
    fn whoever_has_the_key_answers_and_nobody_else() {
        let question = preflight(1).ask(&env(7));
        assert!(is_preflight(&question.token) && question.token.len() <= 128);
        assert!(question.token.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'), "{}", question.token);
        assert_eq!(preflight(1).answer(&question.token).as_ref(), Some(&question.answer));
        assert_eq!(preflight(2).answer(&question.token), None, "another key");
        assert!(!question.answer.trim_start_matches(&question.token).trim_start_matches('.').is_empty());
    }

    #[test]
    fn two_questions_have_two_answers() {
        let (key, env) = (preflight(1), env(7));
        let (one, two) = (key.ask(&env), key.ask(&env));
        assert_ne!((one.token, one.answer), (two.token, two.answer));
    }

    #[test]
    fn a_changed_token_is_not_answered() {
        let key = preflight(1);
        let token = key.ask(&env(7)).token;
        for at in MARK.len()..token.len() - 1 {
            let mut bytes = token.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            assert_eq!(key.answer(&String::from_utf8(bytes).unwrap()), None, "byte {at}");
        }
        assert_eq!(key.answer(&token[..token.len() - 4]), None);
        assert_eq!(key.answer(&format!("{token}AAAA")), None);
    }

    proptest! {
        #[test]
        fn no_made_up_token_is_answered(rest in "[A-Za-z0-9_-]{0,108}", any in ".{0,60}") {
            prop_assert_eq!(preflight(1).answer(&format!("{MARK}{rest}")), None);
            prop_assert_eq!(preflight(1).answer(&any), None);
        }
    }
}
