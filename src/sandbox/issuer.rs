//! The CA of a sandbox: our own test CA, looking at the sandbox's world, or Debian's pebble.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::net::TcpListener;

use super::ca::{
    Authority, AuthorityError, CaaLookup, Kind as ProblemKind, OverHttp, Problem, Resolve, RunningCa, Script, Settings,
    TestCa,
};
use super::dns::{Who, ZoneStore};
use super::pebble::{Pebble, PebbleError, PebbleSettings};
use crate::dns::world::Reply;
use crate::dns::{Look, Observers};
use crate::env::Env;
use crate::model::checks;
use crate::model::evidence::Verdict;
use crate::model::hostname::Hostname;
use crate::model::look::{Ask, CaaAsk, Kind, Platform};

/// How long the platform's own certificate is good: until the sandbox is long forgotten.
const PLATFORM_DAYS: u32 = 90;

/// Which CA issues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The test CA.
    Test,
    /// This pebble, strict and with 5 % of good nonces refused.
    Pebble(PathBuf),
}

/// A CA could not be started.
#[derive(Debug, thiserror::Error)]
pub enum IssuerError {
    /// The test CA's keys.
    #[error("the test CA cannot be made")]
    Authority(#[from] AuthorityError),
    /// The test CA's port.
    #[error("the test CA cannot be served")]
    Serve(#[from] io::Error),
    /// Pebble.
    #[error("pebble cannot be used")]
    Pebble(#[from] PebbleError),
}

/// A running CA.
pub enum Issuer {
    /// The test CA, and what serves it.
    Test(TestCa, RunningCa),
    /// Pebble, the roots of what it and the platform's own CA issue, and that CA: pebble sells no wildcards by hand.
    Pebble(Pebble, String, Box<Authority>),
}

/// What the test CA looks through.
pub(super) struct Sight {
    pub zones: ZoneStore,
    pub observers: Observers,
    pub http_port: u16,
}

impl Issuer {
    pub(super) async fn test(listener: TcpListener, sight: Sight, env: &Env) -> Result<Issuer, IssuerError> {
        let settings = Settings::default();
        let validation = OverHttp {
            env: env.clone(),
            resolve: resolve(sight.zones, sight.http_port),
            caa: caa(sight.observers, settings.caa_identities.clone()),
        };
        let ca = TestCa::new(settings, env.clone(), Arc::new(validation))?;
        let running = ca.serve(listener)?;
        Ok(Issuer::Test(ca, running))
    }

    pub(super) async fn pebble(settings: &PebbleSettings, env: &Env) -> Result<Issuer, IssuerError> {
        let pebble = Pebble::start(settings, env).await?;
        let own = Authority::generate("Nameplate sandbox platform")?;
        let roots = format!("{}\n{}", pebble.fetch_issuing_root().await?.trim_end(), own.root_pem());
        Ok(Issuer::Pebble(pebble, roots, Box::new(own)))
    }

    /// Its ACME directory. A CA of this sandbox remembers nothing, so each one's address is another: an account belongs to
    /// the directory it was made at.
    pub fn directory(&self, run: &str) -> String {
        match self {
            Issuer::Test(_, running) => format!("{}?run={run}", running.directory_url()),
            Issuer::Pebble(pebble, ..) => format!("{}?run={run}", pebble.directory_url()),
        }
    }

    /// The root of the directory's own server.
    pub fn directory_root(&self) -> &str {
        match self {
            Issuer::Test(ca, _) => ca.root_pem(),
            Issuer::Pebble(pebble, ..) => pebble.server_root_pem(),
        }
    }

    /// The roots of what it issues: all that visitors trust.
    pub fn issuing_root(&self) -> &str {
        match self {
            Issuer::Test(ca, _) => ca.root_pem(),
            Issuer::Pebble(_, roots, _) => roots,
        }
    }

    /// A certificate for the platform's own hosts, bought by hand as an operator would: chain and key in PEM.
    pub fn platform_certificate(&self, names: &[String], env: &Env) -> Result<(String, String), AuthorityError> {
        let (serial, now) = (env.draw(), env.now());
        match self {
            Issuer::Test(ca, _) => ca.state().authority().identity_pem(names, serial, now, PLATFORM_DAYS),
            Issuer::Pebble(_, _, own) => own.identity_pem(names, serial, now, PLATFORM_DAYS),
        }
    }

    /// What is to go wrong at it, if it can be told.
    pub fn script(&self) -> Option<Script> {
        match self {
            Issuer::Test(ca, _) => Some(ca.script().clone()),
            Issuer::Pebble(..) => None,
        }
    }

    /// What people call it.
    pub fn name(&self) -> &'static str {
        match self {
            Issuer::Test(..) => "the test CA",
            Issuer::Pebble(..) => "pebble",
        }
    }
}

/// The test CA's own resolver, with port 80 where the edge's plain port stands for it.
fn resolve(zones: ZoneStore, port: u16) -> Resolve {
    Arc::new(move |host: String| {
        let reply = zones.answer(&Who::Resolver("ca".to_owned()), &host, Kind::A);
        async move {
            match reply {
                Reply::Answer(answer) if answer.definite() => {
                    let all: Vec<SocketAddr> = answer.addresses().map(|ip| SocketAddr::new(ip, port)).collect();
                    if all.is_empty() { Err(format!("{host} has no address")) } else { Ok(all) }
                }
                Reply::Answer(answer) => Err(answer.how()),
                Reply::Silence | Reply::Truncated => Err("no answer in time".to_owned()),
            }
        }
        .boxed()
    })
}

/// CAA, looked at over the wire and judged by RFC 8659.
fn caa(observers: Observers, identities: Vec<String>) -> CaaLookup {
    Arc::new(move |host: String, account_uri: String| {
        let (observers, identities) = (observers.clone(), identities.clone());
        async move {
            let mut ask = Ask::new(Hostname::trusted(&host), Platform::default());
            ask.caa = Some(CaaAsk {
                issuers: identities,
                account_uri: Some(account_uri),
                method: "http-01".to_owned(),
                max_age: Duration::from_secs(8 * 3600),
                ..CaaAsk::default()
            });
            let seen = observers.look(&ask).await;
            match checks::judge(&ask, &seen).into_iter().find(|finding| finding.verdict() != Verdict::Pass) {
                None => Ok(()),
                Some(finding) => {
                    let detail = format!("CAA for {host} does not permit issuance: {}", finding.observed.join("; "));
                    Err(Problem::new(ProblemKind::Caa, detail))
                }
            }
        }
        .boxed()
    })
}
