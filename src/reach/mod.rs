//! Requests through the public name: what a visitor, or the CA, would meet at each of a name's addresses.
//!
//! [`Reach`] is the role; [`PublicName`] asks over the network, [`scripted::Scripted`] answers from a script. Addresses come
//! from whoever looked them up; here they are judged ([`address`]) and connected to as they are, never resolved again, so
//! that what was judged is what is asked. A request follows no redirect itself (it says where it was sent, [`Sent`]), ends in
//! bounded time and reads a bounded answer.
//! [`document`] fetches small documents of strangers under the same rules, and believes trusted certificates only; [`hook`]
//! sends them something, under the same rules again.
//! May import `env` and `model`. How to get it wrong: hand it a name to resolve; widen the loopback exception beyond the
//! sandbox; take an untrusted certificate for an error, where the question is just which one is served.

pub mod address;
pub mod document;
mod error;
pub mod hook;
mod place;
mod request;
pub mod scripted;
mod tls;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rustls::RootCertStore;

pub use self::error::ReachError;
pub use self::place::{Place, Sent};
use self::tls::Dialer;
use crate::env::Env;
use crate::model::hostname::Hostname;

/// What an address answered over TLS, by the public name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// The leaf's serial number: its bytes as encoded, each as two lower-case hex digits.
    pub serial: String,
    /// Whether the chain leads to a root that visitors are taken to trust, for this name and now.
    pub trusted: bool,
    /// The HTTP status; none when the certificate came but no HTTP answer did: an origin that hangs does not hide which
    /// certificate is served.
    pub status: Option<u16>,
}

/// What an address answered to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// What the answer calls its server, as one short line.
    pub server: Option<String>,
    /// Where it sends whoever asked.
    pub sent: Option<Sent>,
    /// The beginning of its body.
    pub body: Vec<u8>,
    /// Over TLS, the names of the certificate that was shown, where the name asked for is none of them.
    pub shown: Option<Vec<String>>,
}

/// What came of asking one address.
#[derive(Debug)]
pub struct Answer<T> {
    /// The address.
    pub address: IpAddr,
    /// What it answered, or why it did not.
    pub outcome: Result<T, ReachError>,
}

/// Asks the addresses of a public name.
#[async_trait]
pub trait Reach: Send + Sync + 'static {
    /// One HTTPS request to each address: which certificate and which status it answers with.
    async fn served(&self, host: &Hostname, addresses: &[IpAddr]) -> Vec<Answer<Served>>;

    /// One GET at each address, as a CA makes it: whatever certificate is shown, and following nothing.
    async fn ask(&self, place: &Place, addresses: &[IpAddr]) -> Vec<Answer<Reply>>;
}

/// How the network is reached.
#[derive(Clone, Debug)]
pub struct ReachSettings {
    /// The port behind which plain HTTP is asked: 80, elsewhere only in a sandbox.
    pub http_port: u16,
    /// The port behind which TLS is asked: 443, elsewhere only in a sandbox.
    pub https_port: u16,
    /// Whether loopback addresses may be asked: in a sandbox only.
    pub loopback: bool,
    /// How long one address may take for all of its answer.
    pub timeout: Duration,
}

impl Default for ReachSettings {
    fn default() -> Self {
        ReachSettings { http_port: 80, https_port: 443, loopback: false, timeout: Duration::from_secs(10) }
    }
}

/// Asks over the network.
pub struct PublicName {
    env: Env,
    settings: ReachSettings,
    dialer: Dialer,
}

impl PublicName {
    /// `roots` are those that visitors trust; with none, no chain counts as trusted.
    pub fn new(env: &Env, settings: ReachSettings, roots: RootCertStore) -> Result<Self, ReachError> {
        Ok(PublicName { env: env.clone(), settings, dialer: Dialer::new(env, Arc::new(roots))? })
    }

    /// Judges the address and gives `ask` its time.
    async fn bounded<T>(
        &self,
        address: IpAddr,
        port: u16,
        ask: impl AsyncFnOnce(SocketAddr) -> Result<T, ReachError>,
    ) -> Answer<T> {
        let outcome = match address::judge(address, self.settings.loopback) {
            Err(refusal) => Err(ReachError::Refused(refusal)),
            Ok(address) => tokio::select! {
                biased;
                outcome = ask(SocketAddr::new(address, port)) => outcome,
                () = self.env.sleep(self.settings.timeout) => Err(ReachError::TimedOut(self.settings.timeout)),
            },
        };
        Answer { address, outcome }
    }
}

#[async_trait]
impl Reach for PublicName {
    async fn served(&self, host: &Hostname, addresses: &[IpAddr]) -> Vec<Answer<Served>> {
        let asked = addresses.iter().map(|address| {
            self.bounded(*address, self.settings.https_port, async |to| {
                let (stream, leaf) = self.dialer.dial(host, to).await?;
                let status = tokio::select! {
                    biased;
                    answer = request::get(stream, host, "/", 0) => answer.ok().map(|got| got.status),
                    () = self.env.sleep(self.settings.timeout / 2) => None,
                };
                Ok(Served { serial: leaf.serial, trusted: leaf.trusted, status })
            })
        });
        futures::future::join_all(asked).await
    }

    async fn ask(&self, place: &Place, addresses: &[IpAddr]) -> Vec<Answer<Reply>> {
        let port = if place.tls { self.settings.https_port } else { self.settings.http_port };
        let asked = addresses.iter().map(|address| {
            self.bounded(*address, port, async |to| {
                let (got, shown) = if place.tls {
                    let (stream, leaf) = self.dialer.dial(&place.host, to).await?;
                    (request::get(stream, &place.host, &place.path, request::TOKEN_LIMIT).await?, leaf.others(&place.host))
                } else {
                    let stream = tls::connect(to).await?;
                    (request::get(stream, &place.host, &place.path, request::TOKEN_LIMIT).await?, None)
                };
                let sent = got.location.as_deref().filter(|_| matches!(got.status, 301 | 302 | 303 | 307 | 308));
                Ok(Reply {
                    status: got.status,
                    server: got.server.as_deref().map(place::shown),
                    sent: sent.map(|location| place::sent(place, location, &self.settings)),
                    body: got.body,
                    shown,
                })
            })
        });
        futures::future::join_all(asked).await
    }
}
