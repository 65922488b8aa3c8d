//! `issuers.NAME`: CA accounts, by a name of the operator's choosing.

use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

use super::reader::Reader;
use super::setting::WebUrl;
use crate::model::email::{EmailError, email};
use crate::model::ledger::Limit;
use crate::model::limits::{LimitName, Limits};
use crate::model::secret::Secret;

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
    /// The CA's limits.
    pub limits: Limits,
    /// Smaller is tried first.
    pub preference: u32,
    /// Orders the account has spent before Nameplate counted.
    pub spent_before: u32,
    /// The certificate profile that is asked for.
    pub profile: Option<String>,
    /// The account kept elsewhere that this one is bound to: its name, and the key that both know.
    pub binding: Option<(String, Secret)>,
}

impl IssuerConfig {
    pub(super) fn read_all(r: &mut Reader<'_>) -> Vec<Self> {
        let names = r.names_under("issuers");
        // Without any, the keys are asked for once under a placeholder, so that they are known and documented.
        if names.is_empty() {
            IssuerConfig::read(r, "NAME");
        }
        let all: Vec<IssuerConfig> = names.into_iter().filter_map(|name| IssuerConfig::read(r, &name)).collect();
        for (n, issuer) in all.iter().enumerate() {
            if let Some(first) = all[..n].iter().find(|other| other.directory.as_str() == issuer.directory.as_str()) {
                let said =
                    format!("is the directory of issuers.{} as well: account and limits belong to a directory", first.name);
                r.problem(&format!("issuers.{}.directory", issuer.name), "", said);
            }
        }
        all
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
        let contacts = contacts(r, &key("contacts"));
        let limits = LIMITS.iter().filter_map(|(limit, key, docs)| Some((*limit, self::limit(r, name, *limit, key, docs)?)));
        let limits: Limits = limits.collect();
        let preference = r.value(&key("preference"), 100, "Issuers with smaller numbers are tried first.");
        let spent_before = r.value(&key("spent_before"), 0, "Orders the account made lately by other means.");
        let profile = r.optional(&key("profile"), "Certificate profile to ask for, one of those the CA's directory names.");
        let key_id = r.optional(&key("eab_key_id"), "Name of the account kept elsewhere, where the CA wants one (EAB).");
        let hmac = r.secret(
            &key("eab_hmac"),
            "Its key, in base64url as the CA shows it.",
            "File with the key of the account kept elsewhere.",
        );
        let binding = binding(r, &key("eab_hmac"), key_id, hmac);
        if !limits.contains_key(&LimitName::OrdersPerAccount) {
            r.problem(&key("orders_burst"), "", "orders_burst must be above zero".into());
        }
        let Some(directory) = directory else {
            if name != "NAME" && !given {
                r.problem(&key("directory"), "", "is missing; every issuer needs its directory".into());
            }
            return None;
        };
        let name = name.to_owned();
        Some(IssuerConfig { name, directory, roots_file, contacts, limits, preference, spent_before, profile, binding })
    }
}

fn contacts(r: &mut Reader<'_>, key: &str) -> Vec<String> {
    let given: Vec<String> = r.value(key, vec![], "Mail addresses the CA may write to.");
    let mut contacts = Vec::with_capacity(given.len());
    for text in given {
        match contact(&text) {
            Ok(address) => contacts.push(address),
            Err(e) => r.problem(key, "", format!("{text:?} is no mail address: {e}")),
        }
    }
    contacts
}

/// A mail address that a CA may write to, with or without the `mailto:` that CAs want before it.
pub fn contact(text: &str) -> Result<String, EmailError> {
    let text = text.trim();
    email(text.strip_prefix("mailto:").unwrap_or(text))
}

fn binding(r: &mut Reader<'_>, key: &str, key_id: Option<String>, hmac: Option<Secret>) -> Option<(String, Secret)> {
    match (key_id, hmac) {
        (Some(key_id), Some(hmac)) => match hmac_key(&hmac) {
            Some(hmac) => Some((key_id, hmac)),
            None => {
                r.problem(key, "", "is no base64url".into());
                None
            }
        },
        (None, None) => None,
        _ => {
            r.problem(key, "", "eab_key_id and eab_hmac go together: give both or none".into());
            None
        }
    }
}

/// The key of an account kept elsewhere, as CAs show it: base64url, some with padding.
pub fn hmac_key(shown: &Secret) -> Option<Secret> {
    let text = shown.expose_str()?.trim().trim_end_matches('=').replace('+', "-").replace('/', "_");
    BASE64_URL_SAFE_NO_PAD.decode(text).ok().filter(|key| !key.is_empty()).map(Secret::new)
}

/// The limits: their keys, and what is said of burst and time.
const LIMITS: [(LimitName, &str, [&str; 2]); 5] = [
    (
        LimitName::OrdersPerAccount,
        "orders",
        ["Orders the account may make at once.", "Time in which that many orders become free again."],
    ),
    (
        LimitName::CertificatesPerDomain,
        "domain_certificates",
        [
            "Certificates under one registered domain (public suffix list) at once; 0: the CA has no such limit.",
            "Time in which that many become free again.",
        ],
    ),
    (
        LimitName::CertificatesPerName,
        "name_certificates",
        [
            "Certificates for exactly one name at once; 0: the CA has no such limit.",
            "Time in which that many become free again.",
        ],
    ),
    (
        LimitName::FailuresPerName,
        "failures",
        [
            "Failed validations of one name at once, after which it waits; 0: the CA has no such limit.",
            "Time in which that many become free again.",
        ],
    ),
    (
        LimitName::FailuresInARow,
        "failures_in_a_row",
        [
            "Failed validations of one name without a success between them, after which it is tried at the pace of the time \
             below: far less than what makes the CA pause it (Let's Encrypt: 1152, one forgiven a day); 0: no such stop.",
            "Time in which that many are forgiven.",
        ],
    ),
];

/// One limit; nothing where the CA has none of this kind.
fn limit(
    r: &mut Reader<'_>,
    name: &str,
    limit: LimitName,
    key: &str,
    [burst_doc, per_doc]: &[&'static str; 2],
) -> Option<Limit> {
    let usual = limit.usual();
    let burst = r.value(&format!("issuers.{name}.{key}_burst"), usual.burst, burst_doc);
    let per_key = format!("issuers.{name}.{key}_per");
    let per = r.value(&per_key, Duration::from_secs(usual.per_secs), per_doc);
    if per.as_secs() == 0 {
        r.problem(&per_key, "", "must be a second at least".into());
    }
    // More than one a microsecond is no limit.
    let limit = Limit { burst, per_secs: per.as_secs() };
    (burst > 0 && limit.interval() >= Duration::from_micros(1)).then_some(limit)
}
