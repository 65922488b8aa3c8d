//! The CAs: whether they can be reached, what they say the time is, and how far their accounts may be used.

use std::time::Duration;

use reqwest::{Certificate, Client};
use serde_json::Value;

use super::Report;
use super::database::clock;
use crate::config::{Config, IssuerConfig};
use crate::env::Env;
use crate::model::issuer::Circuit;
use crate::model::moment::Moment;
use crate::store::{Store, issuer_health, issuers};
use crate::telemetry::Chain;

const PART: &str = "issuers";
/// How long a directory may take.
const PATIENCE: Duration = Duration::from_secs(15);
/// The documents that every ACME directory names (RFC 8555 section 7.1.1).
const NEEDED: [&str; 3] = ["newNonce", "newAccount", "newOrder"];

/// Fetches every directory.
pub(super) async fn examine_directories(config: &Config, env: &Env, report: &mut Report) {
    for issuer in &config.issuers {
        directory(issuer, env, report).await;
    }
}

fn client(issuer: &IssuerConfig) -> Result<Client, String> {
    let builder = Client::builder().timeout(PATIENCE);
    let builder = match &issuer.roots_file {
        None => builder,
        Some(path) => {
            let pem = std::fs::read(path).map_err(|e| format!("{} cannot be read: {e}", path.display()))?;
            let roots = Certificate::from_pem_bundle(&pem).map_err(|e| format!("{}: {e}", path.display()))?;
            builder.tls_certs_only(roots)
        }
    };
    builder.build().map_err(|e| Chain(&e).to_string())
}

async fn directory(issuer: &IssuerConfig, env: &Env, report: &mut Report) {
    let what = format!("directory of {}", issuer.name);
    let key = &issuer.name;
    let client = match client(issuer) {
        Ok(client) => client,
        Err(seen) => return report.broken(PART, what, seen, format!("correct issuers.{key}.roots_file")),
    };
    let begun = env.now();
    let response = match client.get(issuer.directory.as_str()).send().await {
        Ok(response) => response,
        Err(e) => {
            let seen = Chain(&e.without_url()).to_string();
            let tls = seen.contains("certificate") || seen.contains("UnknownIssuer");
            let advice = if tls {
                format!(
                    "give issuers.{key}.roots_file the root of this CA's own server, or leave it out for a public CA; check the clock"
                )
            } else {
                format!("check issuers.{key}.directory, and that this machine may connect to it")
            };
            return report.broken(PART, what, seen, advice);
        }
    };
    let took = env.now().since(begun);
    if let Some(date) =
        response.headers().get("date").and_then(|d| d.to_str().ok()).and_then(|d| httpdate::parse_http_date(d).ok())
    {
        let since = date.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        clock(&format!("the clock of {key}"), Moment::default() + since, begun, report);
    }
    let status = response.status();
    let document: Value = response.json().await.unwrap_or_default();
    let missing: Vec<&str> = NEEDED.into_iter().filter(|name| !document[name].is_string()).collect();
    if !status.is_success() || !missing.is_empty() {
        let seen = format!("{} answered {status} without {}", issuer.directory.as_str(), missing.join(", "));
        return report.broken(PART, what, seen, format!("set issuers.{key}.directory to the CA's ACME directory"));
    }
    let terms =
        document["meta"]["termsOfService"].as_str().map_or_else(String::new, |url| format!("; terms of service: {url}"));
    report.ok(PART, what, format!("answered in {} ms{terms}", took.as_millis()));
    if document["meta"]["externalAccountRequired"] == true && issuer.binding.is_none() {
        let advice = format!("set issuers.{key}.eab_key_id and issuers.{key}.eab_hmac to what the CA gave you");
        report.broken(
            PART,
            what_account(key),
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
        let what = what_account(&issuer.name);
        let Some(row) = rows.iter().find(|row| row.name == issuer.name) else {
            report.warn(PART, what, "not asked for yet", "start `nameplate serve`: it opens the account");
            continue;
        };
        let now = env.now();
        let health = health.get(&row.id).cloned().unwrap_or_default();
        if let Some(halted) = &health.halted {
            let advice = format!("nameplate issuer test {}; it says what to do", row.name);
            report.broken(PART, what, format!("halted: {halted}"), advice);
            continue;
        }
        if let Circuit::Open(until) = health.circuit(now) {
            let seen = format!("left alone until {} after {} failures in a row", until.rfc3339(), health.failures);
            report.warn(PART, what, seen, health.said.unwrap_or_default());
            continue;
        }
        match (&row.account_url, &row.account_problem) {
            (_, Some(problem)) => {
                report.broken(
                    PART,
                    what,
                    problem.clone(),
                    "mend what the CA says; the account is asked for again by itself",
                );
            }
            (None, None) => report.warn(PART, what, "not opened yet", "start `nameplate serve`: it opens the account"),
            (Some(_), None) if row.not_before > now => {
                let seen = format!("the CA wants no orders before {}", row.not_before.rfc3339());
                report.warn(PART, what, seen, "nothing: orders go on by themselves then; do not make another account");
            }
            (Some(url), None) => report.ok(PART, what, url.clone()),
        }
    }
}
