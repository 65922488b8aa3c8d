//! What a reader of the feed is: a key of its own, a credential, and whom it trusts. One 0600 file in its state directory.
//!
//! Key and credential are made here and written before anything is sent, so an enrolment whose answer was lost is simply
//! asked for again. The private half never leaves this file.

use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use super::join::{JoinToken, NotAJoinToken};
use crate::env::Env;
use crate::model::id::EdgeId;
use crate::model::secret::Secret;
use crate::vault::distribution::{DistributionError, EdgeKeyPair};
use crate::vault::signing::FeedVerifier;

/// What a credential begins with when it is sent.
pub(super) const CREDENTIAL_MARK: &str = "npe1.";
const FILE: &str = "member.json";

/// Why a reader cannot be who it is.
#[derive(Debug, thiserror::Error)]
pub enum MemberError {
    /// The file cannot be read or written.
    #[error("could not {act} {path:?}")]
    File {
        /// What was tried.
        act: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file is not one of ours.
    #[error("{0:?} is not what this build writes there: restore it, or remove the state directory and enrol again")]
    Malformed(PathBuf),
    /// Nobody has enrolled here and there is no token to enrol with.
    #[error("this state directory has never enrolled: give a join token (`nameplate token create --edge`)")]
    NoToken,
    /// The token is none.
    #[error("the join token was refused")]
    Token(#[from] NotAJoinToken),
    /// The key is unusable.
    #[error("this edge's own key cannot be used")]
    Key(#[from] DistributionError),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    /// Given once the control plane let us in.
    edge_id: Option<EdgeId>,
    /// Needed until then.
    join_secret: Option<String>,
    url: String,
    pin: String,
    signing_key: String,
    private_key: String,
    credential: String,
}

/// A reader of the feed.
pub struct Member {
    path: PathBuf,
    pub(super) edge_id: Option<EdgeId>,
    /// What lets it in.
    pub(super) join_secret: Option<Secret>,
    /// Where the publisher is.
    pub(super) url: String,
    /// The publisher's certificate.
    pub(super) pin: [u8; 32],
    /// Who signs.
    pub(super) verifier: FeedVerifier,
    /// Its own key.
    pub(super) key: EdgeKeyPair,
    /// What it shows to be let in again.
    pub(super) credential: Secret,
}

impl Member {
    /// From the state directory; when nobody has enrolled there, a new one from the join token.
    pub fn open_or_join(state_dir: &Path, join_token: Option<&str>, env: &Env) -> Result<Member, MemberError> {
        std::fs::create_dir_all(state_dir).map_err(|source| file("create", state_dir, source))?;
        let path = state_dir.join(FILE);
        match std::fs::read(&path) {
            Ok(bytes) => read(path, &bytes, join_token),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let token = JoinToken::from_text(join_token.ok_or(MemberError::NoToken)?)?;
                let member = Member {
                    path,
                    edge_id: None,
                    join_secret: Some(token.secret.clone()),
                    url: token.url.clone(),
                    pin: token.pin,
                    verifier: token.verifier(),
                    key: EdgeKeyPair::generate(env)?,
                    credential: Secret::new(env.draw::<32>().to_vec()),
                };
                member.write()?;
                Ok(member)
            }
            Err(source) => Err(file("read", &path, source)),
        }
    }

    /// Its id, once the control plane let it in.
    pub fn edge_id(&self) -> Option<&EdgeId> {
        self.edge_id.as_ref()
    }

    /// Notes that the control plane let us in.
    pub(super) fn enrolled(&mut self, id: EdgeId) -> Result<(), MemberError> {
        self.edge_id = Some(id);
        self.join_secret = None;
        self.write()
    }

    fn write(&self) -> Result<(), MemberError> {
        let text = |secret: &Secret| URL_SAFE_NO_PAD.encode(secret.expose());
        let stored = Stored {
            edge_id: self.edge_id.clone(),
            join_secret: self.join_secret.as_ref().map(text),
            url: self.url.clone(),
            pin: URL_SAFE_NO_PAD.encode(self.pin),
            signing_key: URL_SAFE_NO_PAD.encode(self.verifier.public()),
            private_key: text(self.key.private()),
            credential: text(&self.credential),
        };
        let bytes = Secret::from(serde_json::json!(stored).to_string());
        write_atomically(&self.path, bytes.expose()).map_err(|source| file("write", &self.path, source))
    }
}

fn read(path: PathBuf, bytes: &[u8], join_token: Option<&str>) -> Result<Member, MemberError> {
    let malformed = || MemberError::Malformed(path.clone());
    let bytes32 =
        |text: &str| URL_SAFE_NO_PAD.decode(text).ok().and_then(|b| <[u8; 32]>::try_from(b).ok()).ok_or_else(malformed);
    let secret = |text: &str| bytes32(text).map(|b| Secret::new(b.to_vec()));
    let stored: Stored = serde_json::from_slice(bytes).map_err(|_| malformed())?;
    let mut member = Member {
        edge_id: stored.edge_id,
        join_secret: stored.join_secret.as_deref().map(secret).transpose()?,
        url: stored.url,
        pin: bytes32(&stored.pin)?,
        verifier: FeedVerifier::new(bytes32(&stored.signing_key)?),
        key: EdgeKeyPair::from_private(secret(&stored.private_key)?)?,
        credential: secret(&stored.credential)?,
        path,
    };
    // A first token that expired before it was used is replaced by a second one.
    if member.edge_id.is_none()
        && let Some(text) = join_token
    {
        let token = JoinToken::from_text(text)?;
        member.verifier = token.verifier();
        member.join_secret = Some(token.secret);
        member.url = token.url;
        member.pin = token.pin;
    }
    Ok(member)
}

fn file(act: &'static str, path: &Path, source: io::Error) -> MemberError {
    MemberError::File { act, path: path.to_owned(), source }
}

/// Writes a file that only its owner may read, so that a crash leaves the old one or the new one.
pub(super) fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let draft = path.with_extension("new");
    let mut out = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    out.write_all(bytes)?;
    out.sync_all()?;
    std::fs::rename(&draft, path)?;
    // The name itself is durable once the directory is.
    path.parent().map_or(Ok(()), |dir| std::fs::File::open(dir)?.sync_all())
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

    fn token(b: u8) -> Secret {
        let secret = Secret::new(vec![b; 32]);
        JoinToken { url: format!("https://127.0.0.1:{b}"), secret, pin: [b; 32], signing_key: [b; 32] }.to_text()
    }

    #[test]
    fn a_member_stays_who_it_is_and_takes_another_token_only_until_it_is_let_in() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(Member::open_or_join(dir.path(), None, &env(1)), Err(MemberError::NoToken)));
        let first = Member::open_or_join(dir.path(), token(1).expose_str(), &env(1)).unwrap();
        let mut again = Member::open_or_join(dir.path(), token(2).expose_str(), &env(2)).unwrap();
        assert_eq!((again.key.public(), &again.credential), (first.key.public(), &first.credential));
        assert_eq!((again.url.as_str(), again.pin), ("https://127.0.0.1:2", [2; 32]));

        let id = crate::mint!(env(3), EdgeId);
        again.enrolled(id.clone()).unwrap();
        let enrolled = Member::open_or_join(dir.path(), token(3).expose_str(), &env(4)).unwrap();
        assert_eq!((enrolled.edge_id(), enrolled.url.as_str()), (Some(&id), "https://127.0.0.1:2"));
        assert_eq!(enrolled.join_secret, None);
    }

    proptest! {
        #[test]
        fn a_file_of_junk_is_refused_without_a_panic(junk in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(matches!(read(PathBuf::new(), &junk, None), Err(MemberError::Malformed(_))));
        }
    }
}
