//! The CA on a listener: HTTPS, nonces on every answer, the script around every request, validation beside it.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, header};
use axum::middleware::{self, Next};
use axum::response::Response;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::AbortOnDropHandle;

use super::authority::AuthorityError;
use super::entry::Endpoint;
use super::faults::{Script, What, wire};
use super::jwk::Jwk;
use super::nonces::Nonces;
use super::numbers::AccountNo;
use super::routes;
use super::settings::Settings;
use super::state::CaState;
use super::tls::TlsListener;
use super::validation::{ToValidate, Validation};
use crate::env::Env;
use crate::model::moment::Moment;

/// A test CA: state, keys and seams. Cheap to clone; clones are the same CA.
#[derive(Clone)]
pub struct TestCa {
    env: Env,
    validation: Arc<dyn Validation>,
    script: Script,
    door: Arc<Mutex<Door>>,
    state: Arc<Mutex<CaState>>,
    root_pem: Arc<str>,
}

/// What is needed to let a request in.
pub(super) struct Door {
    pub nonces: Nonces,
    pub keys: BTreeMap<AccountNo, Jwk>,
}

/// The CA at one address, as its handlers see it.
pub(super) struct Desk {
    ca: TestCa,
    base: String,
    closing: CancellationToken,
}

/// The CA while it is served. Dropping it closes the listener and ends its validations.
pub struct RunningCa {
    directory_url: String,
    address: SocketAddr,
    _close: DropGuard,
    _serving: AbortOnDropHandle<()>,
}

impl TestCa {
    /// A CA with new keys and nothing in it.
    pub fn new(settings: Settings, env: Env, validation: Arc<dyn Validation>) -> Result<Self, AuthorityError> {
        let door = Door { nonces: Nonces::keeping(settings.nonces_kept), keys: BTreeMap::new() };
        let state = CaState::new(settings, env.draw())?;
        let root_pem = Arc::from(state.authority().root_pem());
        let (door, state) = (Arc::new(Mutex::new(door)), Arc::new(Mutex::new(state)));
        let script = Script::seeded(env.draw());
        Ok(TestCa { env, validation, script, door, state, root_pem })
    }

    /// What is to go wrong, for whoever wants it to.
    pub fn script(&self) -> &Script {
        &self.script
    }

    /// The root of everything it issues, its own server's certificate too.
    pub fn root_pem(&self) -> &str {
        &self.root_pem
    }

    /// Its state, locked: to look at counters, or to act without HTTP. Not to be held across an await.
    pub fn state(&self) -> MutexGuard<'_, CaState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn door(&self) -> MutexGuard<'_, Door> {
        self.door.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves on `listener`, with a certificate for `localhost`, the loopback addresses and the listener's own.
    pub fn serve(&self, listener: TcpListener) -> io::Result<RunningCa> {
        let address = listener.local_addr()?;
        let listener = TlsListener::new(listener, self.tls(address).map_err(io::Error::other)?, self.env.clone())?;
        let closing = CancellationToken::new();
        let base = format!("https://{address}");
        let desk = Arc::new(Desk { ca: self.clone(), base: base.clone(), closing: closing.clone() });
        let app = routes::router().layer(middleware::from_fn_with_state(desk.clone(), around)).with_state(desk);
        let serve = axum::serve(listener, app).with_graceful_shutdown(closing.clone().cancelled_owned());
        let serving = AbortOnDropHandle::new(tokio::spawn(async move {
            if let Err(e) = serve.await {
                tracing::error!(error = %e, "the test CA stopped serving");
            }
        }));
        Ok(RunningCa {
            directory_url: format!("{base}/directory"),
            address,
            _close: closing.drop_guard(),
            _serving: serving,
        })
    }

    fn tls(&self, address: SocketAddr) -> Result<rustls::ServerConfig, Box<dyn std::error::Error + Send + Sync>> {
        let own = address.ip().to_string();
        let (chain, key) = self.state().authority().server_identity(&["localhost", "127.0.0.1", "::1", &own])?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        // One request at a time on a connection, so that a dropped answer takes the connection with it.
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}

impl RunningCa {
    /// Where ACME clients start.
    pub fn directory_url(&self) -> &str {
        &self.directory_url
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Desk {
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    pub fn account_url(&self, no: &str) -> String {
        self.url(&format!("/account/{no}"))
    }

    pub fn now(&self) -> Moment {
        self.ca.env.now()
    }

    pub fn state(&self) -> MutexGuard<'_, CaState> {
        self.ca.state()
    }

    /// Never held while `state` is asked for: the order is state, then door.
    pub fn door(&self) -> MutexGuard<'_, Door> {
        self.ca.door()
    }

    /// Looks at a challenge beside the request that announced it.
    pub fn start_looking(self: &Arc<Self>, ask: ToValidate) {
        let desk = self.clone();
        tokio::spawn(async move {
            let account_uri = desk.account_url(&ask.account.to_string());
            let looked = ask.look(desk.ca.validation.as_ref(), &account_uri);
            // A closing CA leaves the challenge undecided, as a crashed one would.
            if let Some(outcome) = desk.closing.run_until_cancelled(looked).await {
                desk.state().validated(&ask.authorization, outcome, desk.now());
            }
        });
    }

    pub fn script(&self) -> &Script {
        &self.ca.script
    }

    pub async fn sleep(&self, wait: Duration) {
        self.ca.env.sleep(wait).await;
    }

    fn fresh_nonce(&self) -> String {
        let nonce = BASE64_URL_SAFE_NO_PAD.encode(self.ca.env.draw::<16>());
        self.door().nonces.give_out(nonce.clone());
        nonce
    }
}

async fn around(State(desk): State<Arc<Desk>>, request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let (endpoint, subject) = Endpoint::of(&path);
    let signed = request.method() == Method::POST;
    let what = desk.ca.script.next(endpoint, desk.now());
    let mut response = match &what {
        None => next.run(request).await,
        Some(what) => match wire::before(&desk, what, endpoint, subject, request).await {
            Ok(request) => wire::after(&desk, what, next.run(request).await).await,
            Err(instead) => instead,
        },
    };
    let with_nonce = (signed || endpoint == Endpoint::NewNonce) && what != Some(What::NoNonce);
    let mut add = |name: header::HeaderName, value: String| {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().append(name, value);
        }
    };
    add(header::CACHE_CONTROL, "no-store".to_owned());
    if with_nonce {
        add(header::HeaderName::from_static("replay-nonce"), desk.fresh_nonce());
        add(header::LINK, format!("<{}>;rel=\"index\"", desk.url("/directory")));
    }
    response
}
