//! Messages of the feed as bytes: mark, format, key id, signature, payload. Pure.
//!
//! The signature covers the format and the very payload bytes, so nothing is parsed before it is believed. A format this
//! build does not know is an error of its own: the reader stops there and raises an alarm instead of guessing.

use serde::{Deserialize, Serialize};

use crate::model::feed::{ChallengeEntry, Deltas, Position, Snapshot};
use crate::model::feed_apply::Remembered;
use crate::model::id::{CertificateId, EdgeId};
use crate::model::serial;
use crate::vault::distribution::Label;
use crate::vault::signing::{FeedSigner, FeedVerifier, SigningError};

/// What every message begins with.
const MARK: &[u8; 4] = b"NPFD";
/// The format this build writes and reads.
const FORMAT: u8 = 1;
const KEY_ID: usize = 32;
const SIGNATURE: usize = 64;
const HEADER: usize = MARK.len() + 1 + KEY_ID + SIGNATURE;

/// What the control plane says to an edge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "snake_case")]
pub enum Message {
    /// Everything.
    Snapshot(Snapshot),
    /// Everything that a restored control plane has: to be added to what the reader has, until it says otherwise.
    Recovery(Snapshot),
    /// What changed.
    Deltas(Deltas),
    /// The reader's position does not connect: take a snapshot.
    Reset {
        /// Where the feed is.
        position: Position,
    },
    /// The answer about one token.
    Challenge {
        /// The challenge, if there is one that is not over.
        challenge: Option<ChallengeEntry>,
    },
}

/// What an edge says to be let in.
#[derive(Serialize, Deserialize)]
pub(super) struct Enrol {
    /// The join token's secret, base64url.
    pub token: String,
    /// The name its operator gave it.
    pub name: String,
    /// Its X25519 key, base64url.
    pub public_key: String,
    /// SHA-256 of the credential it made, base64url: a lost answer can be asked for again.
    pub credential_digest: String,
}

/// The answer to it.
#[derive(Serialize, Deserialize)]
pub(super) struct Enrolled {
    /// The edge's id.
    pub edge_id: EdgeId,
}

/// What an edge confirms; also its heartbeat.
#[derive(Serialize, Deserialize)]
pub(super) struct Ack {
    /// What it has; none while it has nothing.
    pub position: Option<Position>,
    /// All certificates it has and does not serve.
    pub exceptions: Vec<Exception>,
}

/// A certificate that an edge has and does not serve.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exception {
    /// The certificate.
    pub certificate_id: CertificateId,
    /// What the edge's own probe saw instead, in words.
    pub observed: String,
    /// The serial number of the certificate that was shown, if one was. An edge of an older release says it in words alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
}

impl Exception {
    /// The serial number of what is served instead, spelt as in the store; none where no certificate was shown.
    pub fn served(&self) -> Option<String> {
        serial::read(self.serial.as_deref().or_else(|| self.observed.strip_prefix("serial "))?)
    }
}

/// What an edge was told that a restored control plane does not know.
#[derive(Serialize, Deserialize)]
pub(super) struct Recollection {
    /// Hosts.
    pub hosts: Vec<Remembered>,
}

/// The answer to it.
#[derive(Serialize, Deserialize)]
pub(super) struct Recollected {
    /// How many were news.
    pub news: u64,
}

/// The answer to an acknowledgement.
#[derive(Serialize, Deserialize)]
pub(super) struct Acked {
    /// Whether the edge is left behind and not counted.
    pub lost: bool,
}

/// Distribution keys, each wrapped for the edge that asked, base64.
#[derive(Serialize, Deserialize)]
pub(super) struct Keys {
    /// The one in use first.
    pub wrapped: Vec<String>,
}

/// Why a message was not believed.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// Not a message at all.
    #[error("not a message of the feed: {seen} bytes, expected the mark NPFD and a header of {HEADER} bytes")]
    Malformed {
        /// How many bytes there are.
        seen: usize,
    },
    /// From a newer release.
    #[error("feed format {seen} is unknown here, this build reads {FORMAT}: upgrade this edge")]
    UnknownFormat {
        /// The format.
        seen: u8,
    },
    /// Signed by a key this reader does not pin.
    #[error("signed by feed key {seen:?}, this reader trusts {have} only")]
    UnknownKey {
        /// The key the message names, cut to what is printable.
        seen: String,
        /// The pinned one.
        have: String,
    },
    /// The signature does not fit.
    #[error("the signature was refused")]
    Signature(#[from] SigningError),
    /// Signed, yet not of a shape this build knows.
    #[error("the signed payload is not of the shape format {FORMAT} has")]
    Payload(#[from] serde_json::Error),
}

/// What a certificate's key is sealed under on its way: it opens as the key of that certificate only.
pub(super) fn key_label(certificate_id: &str) -> Label<'_> {
    Label { kind: "certificate-key", id: certificate_id, version: 1 }
}

fn signed_bytes(payload: &[u8]) -> Vec<u8> {
    [&[FORMAT], payload].concat()
}

/// Writes and signs a message.
pub fn write(signer: &FeedSigner, message: &Message) -> Result<Vec<u8>, WireError> {
    let payload = serde_json::to_vec(message)?;
    let signature = signer.sign(&signed_bytes(&payload))?;
    Ok([MARK.as_slice(), &[FORMAT], signer.key_id().as_bytes(), &signature, &payload].concat())
}

/// Reads a message that the pinned key signed.
pub fn read(verifier: &FeedVerifier, bytes: &[u8]) -> Result<Message, WireError> {
    let malformed = || WireError::Malformed { seen: bytes.len() };
    let rest = bytes.strip_prefix(MARK).ok_or_else(malformed)?;
    let (&format, rest) = rest.split_first().ok_or_else(malformed)?;
    if format != FORMAT {
        return Err(WireError::UnknownFormat { seen: format });
    }
    let (key, rest) = rest.split_at_checked(KEY_ID).ok_or_else(malformed)?;
    let (signature, payload) = rest.split_at_checked(SIGNATURE).ok_or_else(malformed)?;
    if key != verifier.key_id().as_bytes() {
        let seen = String::from_utf8_lossy(key).escape_default().to_string();
        return Err(WireError::UnknownKey { seen, have: verifier.key_id().to_owned() });
    }
    verifier.verify(&signed_bytes(payload), signature)?;
    Ok(serde_json::from_slice(payload)?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::env::manual::Hand;
    use crate::model::moment::Moment;

    fn signer(seed: u64) -> FeedSigner {
        FeedSigner::generate(&Hand::new(Moment::default(), seed).env()).unwrap()
    }

    fn message() -> Message {
        Message::Deltas(Deltas { epoch: 5, after: 1, upto: 2, entries: vec![] })
    }

    #[test]
    fn a_message_is_believed_from_the_pinned_key_only() {
        let bytes = write(&signer(1), &message()).unwrap();
        assert_eq!(read(signer(1).verifier(), &bytes).unwrap(), message());
        assert!(matches!(read(signer(2).verifier(), &bytes), Err(WireError::UnknownKey { .. })));
    }

    #[test]
    fn one_changed_byte_anywhere_is_refused() {
        let signer = signer(1);
        let bytes = write(&signer, &message()).unwrap();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(read(signer.verifier(), &changed).is_err(), "byte {at}");
        }
        for cut in 0..bytes.len() {
            assert!(read(signer.verifier(), &bytes[..cut]).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn what_is_served_instead_is_spelt_as_in_the_store_whatever_release_says_it() {
        let said = |text: &str| serde_json::from_str::<Exception>(text).unwrap();
        let older = said(r#"{"certificate_id":"crt_00000000000000000000000000000001","observed":"serial 04:a7:c3"}"#);
        assert_eq!((older.serial.as_deref(), older.served().as_deref()), (None, Some("04a7c3")));
        let newer = said(
            r#"{"certificate_id":"crt_00000000000000000000000000000001","observed":"serial 04a7c3","serial":"04A7C3"}"#,
        );
        assert_eq!(newer.served().as_deref(), Some("04a7c3"));
        let none = said(r#"{"certificate_id":"crt_00000000000000000000000000000001","observed":"no handshake within 5 s"}"#);
        assert_eq!(none.served(), None);
        assert!(!serde_json::to_string(&none).unwrap().contains("serial"));
        assert_eq!(
            said(r#"{"certificate_id":"crt_00000000000000000000000000000001","observed":"serial","serial":"' OR 1=1"}"#)
                .served(),
            None
        );
    }

    #[test]
    fn another_format_says_so_before_anything_is_parsed() {
        let mut bytes = write(&signer(1), &message()).unwrap();
        bytes[4] = 2;
        let error = read(signer(1).verifier(), &bytes).unwrap_err();
        assert!(matches!(error, WireError::UnknownFormat { seen: 2 }));
        assert_eq!(error.to_string(), "feed format 2 is unknown here, this build reads 1: upgrade this edge");
    }

    proptest! {
        #[test]
        fn junk_is_refused_without_a_panic(junk in prop::collection::vec(any::<u8>(), 0..300), marked: bool) {
            let bytes = if marked { [MARK.as_slice(), &[FORMAT], &junk].concat() } else { junk };
            prop_assert!(read(signer(1).verifier(), &bytes).is_err());
        }

        #[test]
        fn signed_junk_is_refused_without_a_panic(junk in ".{0,200}") {
            let signer = signer(1);
            let signature = signer.sign(&signed_bytes(junk.as_bytes())).unwrap();
            let bytes = [MARK.as_slice(), &[FORMAT], signer.key_id().as_bytes(), &signature, junk.as_bytes()].concat();
            prop_assert!(matches!(read(signer.verifier(), &bytes), Err(WireError::Payload(_))));
        }
    }
}
