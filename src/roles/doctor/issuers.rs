//! The CAs: whether they can be reached, what they say the time is, and how far their accounts may be used.

use std::time::Duration;

use reqwest::{Certificate, Client};
use serde_json::Value;

use super::Report;
use super::database::clock;
use crate::config::Config;
use crate::env::Env;
use crate::model::issuer::{Circuit, Health};
use crate::model::moment::Moment;
use crate::store::issuers::{self, IssuerRow};
use crate::store::{Store, issuer_health};
use crate::telemetry::Chain;

const PART: &str = "issuers";
/// How long a directory may take.
const PATIENCE: Duration = Duration::from_secs(15);
/// The documents that every ACME directory names (RFC 8555 section 7.1.1).
const NEEDED: [&str; 3] = ["newNonce", "newAccount", "newOrder"];

/// Where a CA is, as configuration or its row says, and how that is mended.
struct Place<'a> {
    name: &'a str,
    directory: &'a str,
    /// The roots to trust instead of the system's, and where they are from.
    roots: Option<(Vec<u8>, String)>,
    is_bound: bool,
    /// Whether it was added by command: its settings are in the database.
    is_added: bool,
}

impl Place<'_> {
    /// What to do where one of its settings is wrong.
    fn correct(&self, key: &str, what: &str) -> String {
        let name = self.name;
        match self.is_added {
            false => format!("set issuers.{name}.{key} to {what}"),
            true => format!(
                "nameplate issuer remove {name}, then nameplate issuer add {name} with --{} {what}",
                key.replace('_', "-")
            ),
        }
    }
}

/// Fetches every directory that configuration names.
pub(super) async fn examine_directories(config: &Config, env: &Env, report: &mut Report) {
    for issuer in &config.issuers {
        let roots = match &issuer.roots_file {
            None => None,
            Some(path) => match std::fs::read(path) {
                Ok(pem) => Some((pem, path.display().to_string())),
                Err(e) => {
                    let seen = format!("{} cannot be read: {e}", path.display());
                    let advice = format!("correct issuers.{}.roots_file", issuer.name);
                    report.broken(PART, what_directory(&issuer.name), seen, advice);
                    continue;
                }
            },
        };
        let place = Place {
            name: &issuer.name,
            directory: issuer.directory.as_str(),
            roots,
            is_bound: issuer.binding.is_some(),
            is_added: false,
        };
        directory(&place, env, report).await;
    }
}

fn what_directory(name: &str) -> String {
    format!("directory of {name}")
}

fn client(place: &Place<'_>) -> Result<Client, String> {
    let builder = Client::builder().timeout(PATIENCE);
    let builder = match &place.roots {
        None => builder,
        Some((pem, from)) => {
            let roots = Certificate::from_pem_bundle(pem).map_err(|e| format!("{from}: {e}"))?;
            builder.tls_certs_only(roots)
        }
    };
    builder.build().map_err(|e| Chain(&e).to_string())
}

async fn directory(place: &Place<'_>, env: &Env, report: &mut Report) {
    let what = what_directory(place.name);
    let client = match client(place) {
        Ok(client) => client,
        Err(seen) => {
            return report.broken(PART, what, seen, place.correct("roots_file", "a PEM file of the roots to trust"));
        }
    };
    let begun = env.now();
    let response = match client.get(place.directory).send().await {
        Ok(response) => response,
        Err(e) => {
            let seen = Chain(&e.without_url()).to_string();
            let tls = seen.contains("certificate") || seen.contains("UnknownIssuer");
            let advice = if tls {
                let roots = place.correct("roots_file", "the root of this CA's own server");
                format!("{roots}, or leave it out for a public CA; check the clock")
            } else {
                let directory = place.correct("directory", "the CA's ACME directory");
                format!("check that this machine may connect to {}; if the address is wrong: {directory}", place.directory)
            };
            return report.broken(PART, what, seen, advice);
        }
    };
    let took = env.now().since(begun);
    if let Some(date) =
        response.headers().get("date").and_then(|d| d.to_str().ok()).and_then(|d| httpdate::parse_http_date(d).ok())
    {
        let since = date.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        clock(&format!("the clock of {}", place.name), Moment::default() + since, begun, report);
    }
    let status = response.status();
    let document: Value = response.json().await.unwrap_or_default();
    let missing: Vec<&str> = NEEDED.into_iter().filter(|name| !document[name].is_string()).collect();
    if !status.is_success() || !missing.is_empty() {
        let seen = format!("{} answered {status} without {}", place.directory, missing.join(", "));
        return report.broken(PART, what, seen, place.correct("directory", "the CA's ACME directory"));
    }
    let terms =
        document["meta"]["termsOfService"].as_str().map_or_else(String::new, |url| format!("; terms of service: {url}"));
    report.ok(PART, what, format!("answered in {} ms{terms}", took.as_millis()));
    if document["meta"]["externalAccountRequired"] == true && !place.is_bound {
        let advice = match place.is_added {
            false => format!("set issuers.{0}.eab_key_id and issuers.{0}.eab_hmac to what the CA gave you", place.name),
            true => place.correct("eab_key_id", "and --eab-hmac-file, which the CA gave you"),
        };
        report.broken(
            PART,
            what_account(place.name),
            "the CA asks for an external account binding, and none is configured",
            advice,
        );
    }
}

fn what_account(name: &str) -> String {
    format!("account at {name}")
}

/// Looks at the accounts as they are stored.
pub(super) async fn examine_accounts(config: &Config, store: &Store, env: &Env, report: &mut Report) {
    let rows = match issuers::list(store).await {
        Ok(rows) => rows,
        Err(e) => return report.broken(PART, "accounts", Chain(&e).to_string(), "check the database's own log"),
    };
    let health = match issuer_health::all(store).await {
        Ok(health) => health,
        Err(e) => return report.broken(PART, "accounts", Chain(&e).to_string(), "check the database's own log"),
    };
    for issuer in &config.issuers {
        if !rows.iter().any(|row| row.name == issuer.name) {
            let what = what_account(&issuer.name);
            report.warn(PART, what, "not asked for yet", "start `nameplate serve`: it opens the account");
        }
    }
    for row in &rows {
        let is_configured = config.issuers.iter().any(|issuer| issuer.name == row.name);
        if !row.is_in_use() && !is_configured {
            let seen = match row.is_added() {
                true => "removed: no new order goes there",
                false => "not in the configuration any more: no new order goes there",
            };
            report.skipped(PART, what_account(&row.name), seen);
            continue;
        }
        if row.is_added() && !is_configured {
            let place = Place {
                name: &row.name,
                directory: &row.directory,
                roots: row.roots.as_ref().map(|pem| (pem.clone().into_bytes(), "its roots".to_owned())),
                is_bound: row.binding.is_some(),
                is_added: true,
            };
            directory(&place, env, report).await;
        }
        account(row, health.get(&row.id).cloned().unwrap_or_default(), env.now(), report);
    }
}

/// How far one account may be used.
fn account(row: &IssuerRow, health: Health, now: Moment, report: &mut Report) {
    let what = what_account(&row.name);
    if let Some(halted) = &health.halted {
        let advice = format!("nameplate issuer test {}; it says what to do", row.name);
        return report.broken(PART, what, format!("halted: {halted}"), advice);
    }
    if let Circuit::Open(until) = health.circuit(now) {
        let seen = format!("left alone until {} after {} failures in a row", until.rfc3339(), health.failures);
        let said = health.said.map(|said| format!("; it said: {said}")).unwrap_or_default();
        let advice = format!("nothing where the CA mends itself, else: nameplate issuer test {}{said}", row.name);
        return report.warn(PART, what, seen, advice);
    }
    match (&row.account_url, &row.account_problem) {
        (_, Some(problem)) => {
            let advice = format!(
                "mend what it says; the account is asked for again by itself; more with: nameplate issuer test {}",
                row.name
            );
            report.broken(PART, what, problem.clone(), advice);
        }
        (None, None) => report.warn(PART, what, "not opened yet", "start `nameplate serve`: it opens the account"),
        (Some(_), None) if row.not_before > now => {
            let seen = format!("the CA wants no orders before {}", row.not_before.rfc3339());
            report.warn(PART, what, seen, "nothing: orders go on by themselves then; do not make another account");
        }
        (Some(url), None) => report.ok(PART, what, url.clone()),
    }
}
