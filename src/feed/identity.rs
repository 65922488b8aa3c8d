//! Who the feed is: an epoch and two keys, made at the first start of any process, sealed in the store from then on.

use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use tokio::sync::Notify;

use super::bell::Bell;
use super::{distribution, join, pin};
use crate::env::Env;
use crate::mint;
use crate::model::id::{EdgeId, TokenId};
use crate::model::secret::Secret;
use crate::store::tokens::TokenRow;
use crate::store::{Store, StoreError, edges, feed, tokens};
use crate::vault::distribution::DistributionError;
use crate::vault::signing::{FeedSigner, SigningError};
use crate::vault::{Context, NotSealed, Sealed, Vault, VaultError};

/// Why the feed could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// The store said no.
    #[error("the store did not serve the feed")]
    Store(#[from] StoreError),
    /// A key of the feed does not open.
    #[error("a key the feed needs does not open under this master key")]
    Vault(#[from] VaultError),
    /// A stored key is not what the vault writes.
    #[error("a key the feed needs is not stored as the vault stores keys")]
    Stored(#[from] NotSealed),
    /// The signing key is unusable.
    #[error("the feed's signing key cannot be used")]
    Signing(#[from] SigningError),
    /// A distribution key is unusable.
    #[error("a distribution key cannot be used")]
    Distribution(#[from] DistributionError),
    /// A message could not be written.
    #[error("a message of the feed could not be written")]
    Wire(#[from] super::wire::WireError),
    /// A reader has what this database never numbered.
    #[error(
        "an edge has change {reader} of the feed and this database ends at {feed}: it is an older copy; \
         stop serve, run `nameplate restored`, start serve again"
    )]
    Behind {
        /// The last number that the reader has.
        reader: i64,
        /// The last number given here.
        feed: i64,
    },
    /// The TLS key or certificate is unusable.
    #[error("the feed's TLS key and certificate cannot be used: {0}")]
    Tls(String),
}

/// The control plane's side of the feed; cheap to clone.
#[derive(Clone)]
pub struct Feed(Arc<Inner>);

struct Inner {
    store: Store,
    vault: Arc<Vault>,
    env: Env,
    bell: Bell,
    epoch: i64,
    signer: FeedSigner,
    certificate: CertificateDer<'static>,
    tls: Arc<rustls::ServerConfig>,
}

fn signing_context() -> Context {
    Context::new("feed-signing-key", "1")
}

fn tls_context() -> Context {
    Context::new("feed-tls-key", "1")
}

impl Feed {
    /// Opens the feed of this store; the very first start makes its epoch, its keys and the first distribution key.
    /// Use cases ring `written` after commits.
    pub async fn open(store: Store, vault: Arc<Vault>, env: Env, written: Arc<Notify>) -> Result<Feed, FeedError> {
        let row = match feed::load(&store).await? {
            Some(row) => row,
            None => {
                store.execute(feed::create(&make(&vault, &env)?)).await?;
                // Another process may have been first; what is stored is what counts.
                feed::load(&store).await?.ok_or_else(|| StoreError::not_found("the feed's own row"))?
            }
        };
        let signer = FeedSigner::from_secret(vault.open(&signing_context(), &Sealed::try_from(row.signing_key)?)?)?;
        let key = vault.open(&tls_context(), &Sealed::try_from(row.tls_key)?)?;
        let certificate =
            CertificateDer::from_pem_slice(row.tls_cert.as_bytes()).map_err(|e| FeedError::Tls(e.to_string()))?;
        let tls = server_config(certificate.clone(), &key)?;
        let inner =
            Inner { store, vault, env, bell: Bell::new(written), epoch: row.epoch, signer, certificate, tls: Arc::new(tls) };
        let feed = Feed(Arc::new(inner));
        distribution::ensure(&feed).await?;
        Ok(feed)
    }

    pub(super) fn bell(&self) -> &Bell {
        &self.0.bell
    }

    /// The feed's epoch.
    pub fn epoch(&self) -> i64 {
        self.0.epoch
    }

    pub(super) fn store(&self) -> &Store {
        &self.0.store
    }

    pub(super) fn vault(&self) -> &Vault {
        &self.0.vault
    }

    pub(super) fn env(&self) -> &Env {
        &self.0.env
    }

    pub(super) fn signer(&self) -> &FeedSigner {
        &self.0.signer
    }

    pub(super) fn tls(&self) -> Arc<rustls::ServerConfig> {
        Arc::clone(&self.0.tls)
    }

    /// Mints a join token that one edge can enrol with once, before it expires. The text is a secret.
    pub async fn mint_join_token(&self, url: &str, label: &str, lasts: std::time::Duration) -> Result<Secret, FeedError> {
        let secret = self.env().draw::<32>();
        let now = self.env().now();
        let row = TokenRow {
            id: mint!(self.env(), TokenId),
            scope: "edge_join".to_owned(),
            tenant_id: None,
            label: label.to_owned(),
            created_at: now,
            expires_at: Some(now + lasts),
            used_at: None,
            revoked_at: None,
        };
        self.store().execute(tokens::insert(&row, digest(&SHA256, &secret).as_ref())).await?;
        let token = join::JoinToken {
            url: url.to_owned(),
            secret: Secret::new(secret.to_vec()),
            pin: pin::of(&self.0.certificate),
            signing_key: *self.signer().verifier().public(),
        };
        Ok(token.to_text())
    }

    /// Shuts an edge out for ever and rotates the distribution key, so that nothing sealed from now on opens for it. Whether
    /// there was such an edge to shut out.
    pub async fn revoke(&self, edge: &EdgeId) -> Result<bool, FeedError> {
        let mut tx = self.store().begin().await?;
        if tx.execute(edges::revoke(edge)).await? == 0 {
            return Ok(false);
        }
        distribution::rotate(self, &mut tx).await?;
        tx.commit().await?;
        Ok(true)
    }
}

fn make(vault: &Vault, env: &Env) -> Result<feed::FeedRow, FeedError> {
    let tls = |e: rcgen::Error| FeedError::Tls(e.to_string());
    let signer = FeedSigner::generate(env)?;
    let key = rcgen::KeyPair::generate().map_err(tls)?;
    let certificate =
        rcgen::CertificateParams::new([pin::SERVER_NAME.to_owned()]).and_then(|p| p.self_signed(&key)).map_err(tls)?;
    let key = Secret::new(key.serialize_der());
    Ok(feed::FeedRow {
        epoch: env.now().micros(),
        signing_key: vault.seal(env, &signing_context(), signer.secret())?.into(),
        tls_key: vault.seal(env, &tls_context(), &key)?.into(),
        tls_cert: certificate.pem(),
    })
}

fn server_config(certificate: CertificateDer<'static>, key: &Secret) -> Result<rustls::ServerConfig, FeedError> {
    let tls = |e: rustls::Error| FeedError::Tls(e.to_string());
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.expose().to_vec()));
    let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(tls)?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .map_err(tls)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}
