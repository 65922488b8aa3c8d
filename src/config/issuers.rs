//! `issuers.NAME`: CA accounts, by a name of the operator's choosing.

use std::path::PathBuf;
use std::time::Duration;

use super::reader::Reader;
use super::setting::WebUrl;

/// One issuer.
#[derive(Clone, Debug)]
pub struct IssuerConfig {
    /// Its name here.
    pub name: String,
    /// Its ACME directory.
    pub directory: WebUrl,
    /// Roots to trust instead of the system's, in PEM.
    pub roots_file: Option<PathBuf>,
    /// Mail addresses for the account.
    pub contacts: Vec<String>,
    /// Orders that may be made at once.
    pub orders_burst: u32,
    /// In which time the burst comes back.
    pub orders_per: Duration,
    /// Smaller is tried first.
    pub preference: u32,
    /// Orders the account has spent before Nameplate counted.
    pub spent_before: u32,
}

impl IssuerConfig {
    pub(super) fn read_all(r: &mut Reader<'_>) -> Vec<Self> {
        let names = r.names_under("issuers");
        // Without any, the keys are asked for once under a placeholder, so that they are known and documented.
        if names.is_empty() {
            IssuerConfig::read(r, "NAME");
        }
        names.into_iter().filter_map(|name| IssuerConfig::read(r, &name)).collect()
    }

    fn read(r: &mut Reader<'_>, name: &str) -> Option<Self> {
        let key = |key: &str| format!("issuers.{name}.{key}");
        // A value that is none has been told of already.
        let given = r.is_given(&key("directory"));
        let directory = r.optional(&key("directory"), "URL of the CA's ACME directory.");
        let roots_file = r.optional(
            &key("roots_file"),
            "PEM file of the roots to trust for the directory; without it the system's are trusted.",
        );
        let contacts = r.value(&key("contacts"), vec![], "Mail addresses the CA may write to.");
        let orders_burst = r.value(&key("orders_burst"), 300, "Orders the account may make at once.");
        let orders_per =
            r.value(&key("orders_per"), Duration::from_secs(3 * 3600), "Time in which that many orders become free again.");
        let preference = r.value(&key("preference"), 100, "Issuers with smaller numbers are tried first.");
        let spent_before = r.value(&key("spent_before"), 0, "Orders the account made lately by other means.");
        if orders_burst == 0 || orders_per.is_zero() {
            r.problem(&key("orders_burst"), "", "orders_burst and orders_per must be above zero".into());
        }
        let Some(directory) = directory else {
            if name != "NAME" && !given {
                r.problem(&key("directory"), "", "is missing; every issuer needs its directory".into());
            }
            return None;
        };
        let name = name.to_owned();
        Some(IssuerConfig { name, directory, roots_file, contacts, orders_burst, orders_per, preference, spent_before })
    }
}
