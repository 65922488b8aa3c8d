//! Configuration: one file per section, read once at start.
//!
//! Values come from one TOML file and from environment variables named `NAMEPLATE__SECTION__KEY`, which win. Each section
//! asks a [`Reader`] for its keys; in the same breath it says what a key means and what holds without it, so the list of
//! keys, `docs/configuration.md` and the parser cannot drift apart. A key that no section asked for stops the start, with
//! the nearest key that exists; all problems are told at once, each with its key's name. Secrets are
//! [`Secret`](crate::model::secret::Secret)s and may come from a file: `KEY_file`.
//!
//! May import `model`. To fake it: [`Config::read`] takes texts, not the process's environment. How to get it wrong: read
//! `std::env` anywhere else, or give a secret a default.

mod alerts;
mod api;
mod brand;
mod colour;
mod database;
mod dns;
mod docs;
mod domain_connect;
mod edge;
mod feed;
mod imports;
mod issuers;
mod jobs;
mod letting_go;
mod log;
mod looks;
mod mail;
mod metrics;
mod names;
mod network;
mod portal;
mod problem;
mod proxies;
mod reach;
mod reader;
mod return_url;
mod root;
mod routing;
mod server;
mod setting;
mod sources;
#[cfg(test)]
mod tests;
mod vault;

pub use alerts::AlertsConfig;
pub use api::ApiConfig;
pub use brand::{BrandConfig, SupportLink};
pub use colour::Colour;
pub use database::DatabaseConfig;
pub use dns::{DnsConfig, ServerPlace};
pub use docs::reference;
pub use domain_connect::DomainConnectConfig;
pub use edge::{EdgeConfig, EdgeLimits};
pub use feed::FeedConfig;
pub use imports::ImportsConfig;
pub use issuers::{IssuerConfig, contact, hmac_key};
pub use jobs::JobsConfig;
pub use log::{LogConfig, LogFormat};
pub use looks::LooksConfig;
pub use mail::{MailConfig, MailTls};
pub use metrics::MetricsConfig;
pub use names::NamesConfig;
pub use network::Network;
pub use portal::PortalConfig;
pub use problem::{ConfigError, Problem};
pub use reach::ReachConfig;
pub use reader::{Key, Reader};
pub use return_url::{NotAllowed, ReturnUrl};
pub use root::{Config, Role};
pub use routing::RoutingConfig;
pub use server::ServerConfig;
pub use setting::{DnsName, Origin, Setting, WebUrl};
pub use sources::Sources;
pub use vault::VaultConfig;
