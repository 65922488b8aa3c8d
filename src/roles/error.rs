//! Why a role does not start.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::acme::AcmeError;
use crate::config::ConfigError;
use crate::edge::EdgeError;
use crate::feed::FeedError;
use crate::notify::mail::MailError;
use crate::reach::ReachError;
use crate::store::StoreError;
use crate::vault::request_signing::RequestKeyError;
use crate::vault::{MasterKeyError, VaultError};
use crate::web::LogoError;

/// Why a role does not start, or stopped before it was told to.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A setting is missing that the role needs.
    #[error("the configuration does not suffice")]
    Config(#[from] ConfigError),
    /// A setting reads well and is of no use.
    #[error("{key} cannot be used: {seen}")]
    Setting {
        /// Its key.
        key: String,
        /// What is wrong with it.
        seen: String,
    },
    /// No database.
    #[error("the database cannot be used")]
    Store(#[from] StoreError),
    /// No database to work beside.
    #[error(
        "there is no file {}: database.url is not where `nameplate serve` keeps its database; name that one, or make a new one with \
         `nameplate migrate`", .file.display()
    )]
    NoDatabase {
        /// The file that `database.url` names.
        file: PathBuf,
    },
    /// No database of this schema.
    #[error("the database's schema is not current; run `nameplate migrate` with this binary first")]
    NotMigrated,
    /// A database of a later schema.
    #[error("this binary is older than the database's schema; install the newer release")]
    NewerSchema,
    /// The master key is none.
    #[error("vault.master_key cannot be used")]
    MasterKey(#[from] MasterKeyError),
    /// The master key is another one.
    #[error(
        "the master key (version {version}) opens nothing of this database's vault, which was sealed under version {sealed}: \
         give the key that sealed it as vault.master_key, or among vault.older_keys"
    )]
    WrongMasterKey {
        /// The version given.
        version: u32,
        /// The newest version that the vault was sealed under.
        sealed: u32,
    },
    /// The key of Domain Connect is none.
    #[error("domain_connect.key cannot be used")]
    RequestKey(#[source] RequestKeyError),
    /// The vault failed.
    #[error("the vault cannot be used")]
    Vault(#[from] VaultError),
    /// An issuer's settings.
    #[error("issuers.{name} cannot be used")]
    Issuer {
        /// Its name.
        name: String,
        /// Why.
        source: Box<AcmeError>,
    },
    /// The requests through public names.
    #[error("requests through public names cannot be set up")]
    Reach(#[from] ReachError),
    /// The settings for mail.
    #[error("mail cannot be set up")]
    Mail(#[from] MailError),
    /// The feed.
    #[error("the feed cannot be opened")]
    Feed(#[from] FeedError),
    /// The edge.
    #[error("the edge cannot run")]
    Edge(#[from] EdgeError),
    /// A port.
    #[error("{key} is {address}, where nothing can listen")]
    Listen {
        /// The setting.
        key: &'static str,
        /// Its value.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// The brand's picture.
    #[error("brand.logo_file cannot be used")]
    Brand(#[source] LogoError),
    /// The listener of API and pages broke.
    #[error("the API and the pages are no longer served")]
    Web(#[source] io::Error),
}
