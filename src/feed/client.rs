//! What a reader asks the publisher, over TLS to the pinned certificate.

use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

use super::member::{Member, MemberError};
use super::pin;
use super::wire::{self, Ack, Acked, Enrol, Enrolled, Exception, Keys, Message, Recollected, Recollection, WireError};
use crate::model::feed::Position;
use crate::model::feed_apply::Remembered;
use crate::vault::distribution::Wrapped;
use crate::vault::signing::FeedVerifier;

/// How long a connection may take to stand.
const CONNECT: Duration = Duration::from_secs(5);
/// How long an answer may take beyond what it was asked to wait.
const ANSWER: Duration = Duration::from_secs(10);
/// How long a snapshot may take: 200,000 hosts over a thin line.
const SNAPSHOT: Duration = Duration::from_secs(300);
/// Hosts of one reminder: well under what the publisher reads at once.
const REMEMBERED_AT_ONCE: usize = 200;
/// Bytes of an answer. Longer ones are not from our publisher.
const LONGEST: usize = 1 << 30;

/// Why the publisher was of no help.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// It does not know us, or no longer.
    #[error("the control plane refused this edge: {said}")]
    Refused {
        /// Its sentence.
        said: String,
    },
    /// It cannot be reached, or said something else.
    #[error("the control plane at {url} cannot be reached")]
    Unreachable {
        /// Where it should be.
        url: String,
        /// Why not.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// It answered and could not help.
    #[error("the control plane answered {status}: {said}")]
    Status {
        /// The HTTP status.
        status: u16,
        /// Its sentence.
        said: String,
    },
    /// What it said is not to be believed, or not to be understood.
    #[error("a message of the feed was refused")]
    Wire(#[from] WireError),
    /// The answer is not of the shape asked for.
    #[error("the control plane answered {path} with something else than this build reads")]
    Shape {
        /// What was asked.
        path: String,
    },
    /// The own files failed.
    #[error("this edge's own state cannot be used")]
    Member(#[from] MemberError),
}

/// A reader's line to the publisher.
#[derive(Clone)]
pub struct FeedClient {
    http: reqwest::Client,
    url: String,
    bearer: String,
    verifier: FeedVerifier,
}

impl FeedClient {
    /// The line of a member.
    pub fn new(member: &Member) -> Result<FeedClient, ClientError> {
        let unreachable =
            |source: Box<dyn std::error::Error + Send + Sync>| ClientError::Unreachable { url: member.url.clone(), source };
        let tls = pin::client_config(member.pin).map_err(|e| unreachable(e.into()))?;
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT)
            .tcp_nodelay(true)
            .build()
            .map_err(|e| unreachable(e.into()))?;
        Ok(FeedClient {
            http,
            url: member.url.trim_end_matches('/').to_owned(),
            bearer: format!(
                "Bearer {}{}",
                super::member::CREDENTIAL_MARK,
                URL_SAFE_NO_PAD.encode(member.credential.expose())
            ),
            verifier: member.verifier.clone(),
        })
    }

    /// Asks to be let in, unless this member was before.
    pub async fn enrol(&self, member: &mut Member, name: &str) -> Result<(), ClientError> {
        let (None, Some(secret)) = (&member.edge_id, &member.join_secret) else { return Ok(()) };
        let asked = Enrol {
            token: URL_SAFE_NO_PAD.encode(secret.expose()),
            name: name.to_owned(),
            public_key: URL_SAFE_NO_PAD.encode(member.key.public()),
            credential_digest: URL_SAFE_NO_PAD.encode(digest(&SHA256, member.credential.expose())),
        };
        let answer: Enrolled = self.post("/feed/v1/enrol", &asked).await?;
        Ok(member.enrolled(answer.edge_id)?)
    }

    /// What changed after a position; waits up to `wait` for something.
    pub async fn changes(&self, after: Position, wait: Duration) -> Result<Message, ClientError> {
        let path = format!("/feed/v1/changes?epoch={}&after={}&wait={}", after.epoch, after.seq, wait.as_millis());
        self.message(&path, wait + ANSWER).await
    }

    /// Everything.
    pub async fn snapshot(&self) -> Result<Message, ClientError> {
        self.message("/feed/v1/snapshot", SNAPSHOT).await
    }

    /// The answer to one token, if the control plane knows it.
    pub async fn key_authorization(&self, token: &str) -> Result<Option<String>, ClientError> {
        let path = format!("/feed/v1/challenge/{token}");
        match self.message(&path, ANSWER).await? {
            // A signed answer about another token would be an answer replayed.
            Message::Challenge { challenge } => Ok(challenge.filter(|c| c.token == token).and_then(|c| c.key_authorization)),
            _ => Err(ClientError::Shape { path }),
        }
    }

    /// Confirms what is held and served; also the heartbeat. Whether this reader is left behind and not counted.
    pub async fn ack(&self, position: Option<Position>, exceptions: Vec<Exception>) -> Result<bool, ClientError> {
        let answer: Acked = self.post("/feed/v1/ack", &Ack { position, exceptions }).await?;
        Ok(answer.lost)
    }

    /// Tells a restored control plane what it does not know; how much of it was news.
    pub async fn recollect(&self, hosts: &[Remembered]) -> Result<u64, ClientError> {
        let mut news = 0;
        for hosts in hosts.chunks(REMEMBERED_AT_ONCE) {
            let answer: Recollected = self.post("/feed/v1/recollection", &Recollection { hosts: hosts.to_vec() }).await?;
            news += answer.news;
        }
        Ok(news)
    }

    /// The distribution keys, wrapped for this reader.
    pub async fn keys(&self) -> Result<Vec<Wrapped>, ClientError> {
        let path = "/feed/v1/keys";
        let bytes = self.send(self.http.get(self.at(path)), ANSWER).await?;
        let shape = || ClientError::Shape { path: path.to_owned() };
        let keys: Keys = serde_json::from_slice(&bytes).map_err(|_| shape())?;
        let wrapped = keys.wrapped.iter().map(|w| STANDARD.decode(w).ok().and_then(|b| Wrapped::try_from(b).ok()));
        wrapped.collect::<Option<Vec<_>>>().ok_or_else(shape)
    }

    fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    async fn message(&self, path: &str, within: Duration) -> Result<Message, ClientError> {
        let bytes = self.send(self.http.get(self.at(path)), within).await?;
        Ok(wire::read(&self.verifier, &bytes)?)
    }

    async fn post<T: for<'de> serde::Deserialize<'de>>(
        &self,
        path: &str,
        body: &impl serde::Serialize,
    ) -> Result<T, ClientError> {
        let bytes = self.send(self.http.post(self.at(path)).json(body), ANSWER).await?;
        serde_json::from_slice(&bytes).map_err(|_| ClientError::Shape { path: path.to_owned() })
    }

    async fn send(&self, request: reqwest::RequestBuilder, within: Duration) -> Result<Vec<u8>, ClientError> {
        let unreachable =
            |e: reqwest::Error| ClientError::Unreachable { url: self.url.clone(), source: e.without_url().into() };
        let request = request.header(reqwest::header::AUTHORIZATION, &self.bearer).timeout(within);
        let mut answer = request.send().await.map_err(unreachable)?;
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(unreachable)? {
            if body.len() + chunk.len() > LONGEST {
                return Err(ClientError::Shape { path: "anything".to_owned() });
            }
            body.extend_from_slice(&chunk);
        }
        if answer.status().is_success() {
            return Ok(body);
        }
        let said: String = String::from_utf8_lossy(&body).chars().take(200).flat_map(char::escape_debug).collect();
        match answer.status() {
            reqwest::StatusCode::UNAUTHORIZED => Err(ClientError::Refused { said }),
            status => Err(ClientError::Status { status: status.as_u16(), said }),
        }
    }
}
