//! The join token: all a new edge needs to find its control plane, to know it, and to be let in once.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::model::secret::Secret;
use crate::vault::signing::FeedVerifier;

const MARK: &str = "npj1.";

/// What a join token says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinToken {
    /// Where the publisher listens, `https://host:port`.
    pub url: String,
    /// What lets one edge in, once.
    pub secret: Secret,
    /// SHA-256 of the publisher's certificate.
    pub pin: [u8; 32],
    /// The key that signs the feed.
    pub signing_key: [u8; 32],
}

/// A text that is no join token. Never quotes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a join token: {0}; make one with `nameplate token create --edge`")]
pub struct NotAJoinToken(&'static str);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    url: String,
    secret: String,
    pin: String,
    /// The signing key's id, so that a person can compare it; it follows from the key.
    key_id: String,
    key: String,
}

impl JoinToken {
    /// The text to hand to an edge.
    pub fn to_text(&self) -> Secret {
        let fields = Fields {
            url: self.url.clone(),
            secret: URL_SAFE_NO_PAD.encode(self.secret.expose()),
            pin: URL_SAFE_NO_PAD.encode(self.pin),
            key_id: self.verifier().key_id().to_owned(),
            key: URL_SAFE_NO_PAD.encode(self.signing_key),
        };
        let json = serde_json::json!(fields).to_string();
        Secret::from(format!("{MARK}{}", URL_SAFE_NO_PAD.encode(json)))
    }

    /// From the text.
    pub fn from_text(text: &str) -> Result<JoinToken, NotAJoinToken> {
        let body = text.trim().strip_prefix(MARK).ok_or(NotAJoinToken("it does not begin with npj1."))?;
        let json = URL_SAFE_NO_PAD.decode(body).map_err(|_| NotAJoinToken("it is cut short or changed"))?;
        let fields: Fields = serde_json::from_slice(&json).map_err(|_| NotAJoinToken("a part is missing or unknown"))?;
        let bytes = |text: &str| -> Result<[u8; 32], NotAJoinToken> {
            let decoded = URL_SAFE_NO_PAD.decode(text).ok().and_then(|b| b.try_into().ok());
            decoded.ok_or(NotAJoinToken("a key in it is not 32 bytes"))
        };
        let secret = Secret::new(bytes(&fields.secret)?.to_vec());
        let token = JoinToken { url: fields.url, secret, pin: bytes(&fields.pin)?, signing_key: bytes(&fields.key)? };
        if token.verifier().key_id() == fields.key_id {
            Ok(token)
        } else {
            Err(NotAJoinToken("the signing key and its id differ"))
        }
    }

    /// What checks the feed's signatures.
    pub fn verifier(&self) -> FeedVerifier {
        FeedVerifier::new(self.signing_key)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn token(url: &str, b: u8) -> JoinToken {
        JoinToken { url: url.to_owned(), secret: Secret::new(vec![b; 32]), pin: [b ^ 1; 32], signing_key: [b ^ 2; 32] }
    }

    #[test]
    fn a_refusal_says_what_to_do_and_quotes_nothing() {
        let said = JoinToken::from_text("hunter2").unwrap_err().to_string();
        assert!(said.contains("nameplate token create --edge") && !said.contains("hunter2"));
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(url in ".{0,40}", b: u8) {
            let text = token(&url, b).to_text();
            prop_assert_eq!(JoinToken::from_text(text.expose_str().unwrap()).unwrap(), token(&url, b));
        }

        #[test]
        fn junk_is_refused_without_a_panic(junk in "(npj1\\.)?[A-Za-z0-9_-]{0,80}") {
            prop_assert!(JoinToken::from_text(&junk).is_err());
        }
    }
}
