//! `nameplate issuer add|set|remove|list|test|roll-key|register`: the CAs and our accounts there, on the store. Whatever runs beside takes
//! up the changes by itself.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use clap::{Args, Subcommand};
use serde_json::json;

use super::{Out, Surroundings, load};
use crate::acme::{AccountStatus, Authority};
use crate::app::account::{self, RollWith};
use crate::app::authorities::{Authorities as _, CaPlace};
use crate::config::{Setting, WebUrl, contact, hmac_key};
use crate::env::Env;
use crate::mint;
use crate::model::id::IssuerId;
use crate::model::issuer::Health;
use crate::model::ledger::Limit;
use crate::model::limits::{LimitName, Limits, usual};
use crate::model::secret::Secret;
use crate::roles::{ByRow, open_current, open_vault};
use crate::store::issuers::{self, IssuerRow, IssuerSeed, Terms};
use crate::store::{Store, StoreError, issuer_health};
use crate::telemetry::Chain;

#[derive(Subcommand)]
pub(super) enum IssuerCommand {
    /// Add a CA beside those of the configuration; it is used at once
    Add(AddArgs),
    /// Change a CA that was added; a running `serve` goes by it within seconds
    Set(SetArgs),
    /// Use a CA no more that was added; what is on its way there goes on, and its account is kept
    Remove {
        /// Its name
        name: String,
    },
    /// List the CAs, the preferred first
    List,
    /// Ask a CA for its directory and how our account stands there; where all is well, orders go on
    Test {
        /// Its name
        name: String,
    },
    /// Give our account another key
    RollKey {
        /// The CA's name
        name: String,
    },
    /// Forget an account that the CA no longer has: `serve` registers anew
    Register {
        /// The CA's name
        name: String,
        /// With another key: for an account that was shut, or whose key is in doubt
        #[arg(long)]
        new_key: bool,
    },
}

#[derive(Args)]
pub(super) struct AddArgs {
    /// A name of your choosing
    pub name: String,
    /// The CA's ACME directory
    #[arg(long, value_name = "URL")]
    pub directory: String,
    /// Smaller is tried first
    #[arg(long, default_value_t = 100)]
    pub preference: u32,
    /// Mail address that the CA may write to; can be given several times
    #[arg(long = "contact", value_name = "ADDRESS")]
    pub contacts: Vec<String>,
    /// PEM file of the roots to trust for the directory, instead of the system's
    #[arg(long, value_name = "FILE")]
    pub roots_file: Option<PathBuf>,
    /// Certificate profile to ask for
    #[arg(long)]
    pub profile: Option<String>,
    /// Name of the account kept elsewhere, where the CA wants one (EAB)
    #[arg(long, value_name = "ID", requires = "eab_hmac_file")]
    pub eab_key_id: Option<String>,
    /// File with its key, in base64url as the CA shows it
    #[arg(long, value_name = "FILE", requires = "eab_key_id")]
    pub eab_hmac_file: Option<PathBuf>,
    /// A limit unlike Let's Encrypt's: orders_per_account=300/3h; 0/1s, but for that one: the CA has no such limit
    #[arg(long = "limit", value_name = "NAME=BURST/TIME")]
    pub limits: Vec<String>,
    /// Orders the account made lately by other means
    #[arg(long, default_value_t = 0)]
    pub spent_before: u32,
}

#[derive(Args)]
pub(super) struct SetArgs {
    /// Its name
    pub name: String,
    /// Smaller is tried first
    #[arg(long)]
    pub preference: Option<u32>,
    /// Certificate profile to ask for; an empty one asks for none
    #[arg(long)]
    pub profile: Option<String>,
    /// A limit, written as with `add`; those not named stay as they are
    #[arg(long = "limit", value_name = "NAME=BURST/TIME")]
    pub limits: Vec<String>,
}

pub(super) async fn run(
    surroundings: &Surroundings,
    file: Option<&Path>,
    env: &Env,
    command: IssuerCommand,
    out: &mut Out<'_>,
) -> anyhow::Result<()> {
    let config = load(surroundings, file)?;
    match command {
        IssuerCommand::Add(args) => {
            let contacts = contacts(&args.contacts)?;
            let (store, vault) = open_vault(&config, env).await?;
            let seed = seed(&args, contacts, |hmac| Ok(account::seal_binding(&vault, env, &args.name, hmac)?))?;
            let done = add(&store, env, &seed).await;
            store.close().await;
            done?;
            say(out, &seed.name, "added", "Added. A running `serve` opens the account within seconds.")
        }
        IssuerCommand::Set(args) => {
            let store = open_current(&config).await?;
            let done = set(&store, env, &args).await;
            store.close().await;
            done?;
            say(out, &args.name, "changed", "Changed. A running `serve` goes by it within seconds.")
        }
        IssuerCommand::Remove { name } => {
            let store = open_current(&config).await?;
            let done = remove(&store, env, &name).await;
            store.close().await;
            done?;
            say(
                out,
                &name,
                "removed",
                "Removed: no new order goes there. Names that waited there go to the CA that is preferred.",
            )
        }
        IssuerCommand::List => {
            let store = open_current(&config).await?;
            let (rows, health) = (issuers::list(&store).await?, issuer_health::all(&store).await?);
            store.close().await;
            let listed: Vec<(IssuerRow, Health)> = rows
                .into_iter()
                .map(|row| (health.get(&row.id).cloned().unwrap_or_default(), row))
                .map(|(h, r)| (r, h))
                .collect();
            list(&listed, env, out)
        }
        IssuerCommand::Test { name } => {
            let (store, vault) = open_vault(&config, env).await?;
            let done = async {
                let (row, authority) = found(&store, env, &name).await?;
                test(&store, &vault, &row, authority.as_ref(), out).await
            };
            let done = done.await;
            store.close().await;
            done
        }
        IssuerCommand::RollKey { name } => {
            let (store, vault) = open_vault(&config, env).await?;
            let done = async {
                let (row, authority) = found(&store, env, &name).await?;
                let owner = format!("{}-roll", std::process::id());
                let with = RollWith { env, store: &store, vault: &vault };
                Ok::<_, anyhow::Error>(account::roll_key(&with, authority.as_ref(), &row, &owner).await?)
            };
            let done = done.await;
            store.close().await;
            done?;
            say(
                out,
                &name,
                "key_changed",
                "The account has another key, which is sealed in the database; the old one opens nothing.",
            )
        }
        IssuerCommand::Register { name, new_key } => {
            let store = open_current(&config).await?;
            let row = row(&store, &name).await?;
            let mut tx = store.begin().await?;
            issuers::forget_account(&mut tx, &row.id, new_key).await?;
            issuer_health::trust_again(&mut tx, &row.id).await?;
            tx.commit().await?;
            store.close().await;
            say(out, &name, "forgotten", "The account is forgotten here. A running `serve` registers anew within seconds.")
        }
    }
}

fn say(out: &mut Out<'_>, name: &str, outcome: &str, line: &str) -> anyhow::Result<()> {
    if out.json {
        out.document(&json!({ "issuer": name, "outcome": outcome }))?;
    } else {
        out.line(line)?;
    }
    Ok(())
}

fn contacts(given: &[String]) -> anyhow::Result<Vec<String>> {
    let read = |text: &String| contact(text).map_err(|e| anyhow!("{text:?} is no mail address for --contact: {e}"));
    given.iter().map(read).collect()
}

fn seed(
    args: &AddArgs,
    contacts: Vec<String>,
    seal: impl FnOnce(&Secret) -> anyhow::Result<Vec<u8>>,
) -> anyhow::Result<IssuerSeed> {
    let read = |path: &Path| std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()));
    let clean = args.name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if !clean || args.name.is_empty() || args.name.len() > 60 {
        bail!("{:?} is no name for an issuer: letters, digits, - and _, up to 60", args.name);
    }
    let directory = WebUrl::read(&args.directory)
        .ok_or_else(|| anyhow!("{:?} is no directory: expected {}", args.directory, WebUrl::EXPECTED))?;
    let limits = with_limits(usual(), &args.limits)?;
    let binding = match (&args.eab_key_id, &args.eab_hmac_file) {
        (Some(key_id), Some(path)) => {
            let hmac =
                hmac_key(&Secret::from(read(path)?)).ok_or_else(|| anyhow!("{} holds no base64url", path.display()))?;
            Some((key_id.clone(), seal(&hmac)?))
        }
        _ => None,
    };
    Ok(IssuerSeed {
        name: args.name.clone(),
        directory: directory.as_str().to_owned(),
        preference: i64::from(args.preference),
        limits,
        spent_before: args.spent_before,
        contacts,
        roots: args.roots_file.as_deref().map(read).transpose()?,
        profile: args.profile.clone(),
        binding,
    })
}

/// The limits with those that were given in their places.
fn with_limits(mut limits: Limits, given: &[String]) -> anyhow::Result<Limits> {
    for text in given {
        let (name, limit) = limit(text).ok_or_else(|| {
            let names: Vec<&str> = LimitName::ALL.iter().map(|l| l.as_str()).collect();
            anyhow!("{text:?} is no limit: expected one of {} with =300/3h behind it", names.join(", "))
        })?;
        match limit {
            Some(limit) => limits.insert(name, limit),
            None if name == LimitName::OrdersPerAccount => bail!(
                "{text:?}: orders_per_account must be above zero, for it is how fast the CA is asked; where it allows more than \
                 is ever needed: orders_per_account=10000/1h"
            ),
            None => limits.remove(&name),
        };
    }
    Ok(limits)
}

/// `orders_per_account=300/3h`; no burst means no limit.
fn limit(text: &str) -> Option<(LimitName, Option<Limit>)> {
    let (name, numbers) = text.split_once('=')?;
    let (burst, per) = numbers.split_once('/')?;
    let limit = Limit { burst: burst.parse().ok()?, per_secs: Duration::read(per)?.as_secs() };
    (limit.per_secs > 0).then_some((name.parse().ok()?, (limit.burst > 0).then_some(limit)))
}

async fn add(store: &Store, env: &Env, seed: &IssuerSeed) -> anyhow::Result<()> {
    // What cannot even be spoken to is told before anything is written.
    authority(
        env,
        &CaPlace {
            name: &seed.name,
            directory: &seed.directory,
            roots: seed.roots.as_deref(),
            profile: seed.profile.as_deref(),
        },
    )?;
    let mut tx = store.begin().await?;
    match issuers::add(&mut tx, seed, env.now(), &mint!(env, IssuerId)).await {
        Err(StoreError::Conflict { constraint }) => {
            bail!("there is the {constraint} already, with this name or this directory; see: nameplate issuer list")
        }
        other => other?,
    }
    Ok(tx.commit().await?)
}

async fn set(store: &Store, env: &Env, args: &SetArgs) -> anyhow::Result<()> {
    if args.preference.is_none() && args.profile.is_none() && args.limits.is_empty() {
        bail!("nothing to change: expected --preference, --profile or --limit");
    }
    let found = row(store, &args.name).await?;
    let mut tx = store.begin().await?;
    // Read anew under its lock: what two commands change is in it both.
    let row = issuers::lock(&mut tx, &found.id).await?.unwrap_or(found);
    if !row.is_in_use() {
        bail!("the issuer {:?} is not in use; add it again with what it is to have: nameplate issuer add", row.name);
    }
    if !row.is_added() {
        bail!("the issuer {:?} is one of the configuration: change it there and start `serve` again", row.name);
    }
    let terms = Terms {
        preference: args.preference.map_or(row.preference, i64::from),
        profile: args.profile.clone().map_or(row.profile, |given| Some(given).filter(|p| !p.is_empty())),
        limits: with_limits(row.limits, &args.limits)?,
    };
    issuers::set(&mut tx, &row.id, &terms, env.now()).await?;
    Ok(tx.commit().await?)
}

async fn remove(store: &Store, env: &Env, name: &str) -> anyhow::Result<()> {
    let row = row(store, name).await?;
    if !row.is_in_use() {
        bail!("the issuer {name:?} is not in use");
    }
    let mut tx = store.begin().await?;
    if !issuers::remove(&mut tx, &row.id, env.now()).await? {
        bail!("the issuer {name:?} is one of the configuration: take it out there and start `serve` again");
    }
    Ok(tx.commit().await?)
}

fn authority(env: &Env, place: &CaPlace<'_>) -> anyhow::Result<Arc<dyn Authority>> {
    ByRow::new(env).of(place).with_context(|| format!("the CA {} cannot be spoken to", place.name))
}

async fn row(store: &Store, name: &str) -> anyhow::Result<IssuerRow> {
    let found = issuers::list(store).await?.into_iter().find(|row| row.name == name);
    found.ok_or_else(|| anyhow!("there is no issuer {name:?}; see: nameplate issuer list"))
}

async fn found(store: &Store, env: &Env, name: &str) -> anyhow::Result<(IssuerRow, Arc<dyn Authority>)> {
    let row = row(store, name).await?;
    let authority = authority(env, &CaPlace::of_row(&row))?;
    Ok((row, authority))
}

async fn test(
    store: &Store,
    vault: &crate::vault::Vault,
    row: &IssuerRow,
    authority: &dyn Authority,
    out: &mut Out<'_>,
) -> anyhow::Result<()> {
    let facts = authority.directory().await.context("the CA's directory is not to be had")?;
    if let Some(profile) = row.profile.as_ref().filter(|p| !facts.profiles.contains_key(*p)) {
        let known: Vec<&str> = facts.profiles.keys().map(String::as_str).collect();
        bail!(
            "the CA has no profile {profile:?}, but: {}",
            if known.is_empty() { "none".to_owned() } else { known.join(", ") }
        );
    }
    if facts.external_account_required && row.binding.is_none() {
        bail!("the CA wants an account kept elsewhere (EAB), and this issuer has none: give eab_key_id and eab_hmac");
    }
    let status = account::examine(vault, authority, row).await.map_err(|e| {
        anyhow!(
            "the account {} is of no use: {}; if the CA has lost or shut it: nameplate issuer register {}",
            row.account_url.as_deref().unwrap_or_default(),
            Chain(&e),
            row.name
        )
    })?;
    match status {
        None | Some(AccountStatus::Valid) => {}
        Some(status) => bail!(
            "the CA says that the account {} is {status:?}; for another one: nameplate issuer register {} --new-key",
            row.account_url.as_deref().unwrap_or_default(),
            row.name
        ),
    }
    let mut tx = store.begin().await?;
    issuer_health::trust_again(&mut tx, &row.id).await?;
    tx.commit().await?;
    if out.json {
        out.document(&json!({
            "issuer": row.name, "directory": row.directory, "account": row.account_url, "caa_identities": facts.caa_identities,
            "profiles": facts.profiles, "renewal_info": facts.renewal_info,
            "external_account_required": facts.external_account_required,
        }))?;
        return Ok(());
    }
    out.line(&format!("The directory answers. CAA names: {}.", facts.caa_identities.join(", ")))?;
    match &row.account_url {
        Some(url) => out.line(&format!("The account {url} is valid and has our key."))?,
        None => out.line("There is no account yet: `nameplate serve` opens it.")?,
    }
    Ok(())
}

fn list(listed: &[(IssuerRow, Health)], env: &Env, out: &mut Out<'_>) -> anyhow::Result<()> {
    let now = env.now();
    let state = |row: &IssuerRow, health: &Health| match (&row.account_url, row.is_in_use()) {
        (_, false) => "not in use",
        (None, true) => "no account",
        (Some(_), true) => health.circuit(now).word(),
    };
    if out.json {
        let document = |(row, health): &(IssuerRow, Health)| {
            let limits: Limits = row.limits.clone();
            json!({
                "name": row.name, "directory": row.directory, "preference": row.is_in_use().then_some(row.preference),
                "source": row.source, "state": state(row, health), "account": row.account_url,
                "account_problem": row.account_problem, "halted": health.halted, "last_failure": health.said,
                "profile": row.profile, "bound": row.binding.is_some(), "limits": limits,
                "caa_identities": row.caa_identities,
            })
        };
        out.document(&listed.iter().map(document).collect::<Vec<_>>())?;
        return Ok(());
    }
    let line = |(row, health): &(IssuerRow, Health)| {
        vec![
            row.name.clone(),
            state(row, health).to_owned(),
            if row.is_in_use() { row.preference.to_string() } else { "-".to_owned() },
            row.source.clone(),
            row.account_url.clone().unwrap_or_else(|| "-".to_owned()),
            row.directory.clone(),
        ]
    };
    let (used, unused): (Vec<_>, Vec<_>) = listed.iter().partition(|(row, _)| row.is_in_use());
    let head = ["NAME", "STATE", "PREFERENCE", "FROM", "ACCOUNT", "DIRECTORY"];
    out.table(&head, &used.iter().map(|one| line(one)).collect::<Vec<_>>())?;
    for (row, health) in listed {
        if let Some(problem) = row.account_problem.as_ref().filter(|_| row.is_in_use()) {
            out.line(&format!("{} has no account: {problem}", row.name))?;
        }
        if let Some(halted) = &health.halted {
            out.line(&format!("{} is halted: {halted}. When it is mended: nameplate issuer test {}", row.name, row.name))?;
        }
    }
    if !unused.is_empty() {
        out.line("")?;
        out.line("Not in use any more; kept with their accounts and what was ordered there:")?;
        out.table(&head, &unused.iter().map(|one| line(one)).collect::<Vec<_>>())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_and_junk_is_none() {
        let three = Limit { burst: 300, per_secs: 10_800 };
        assert_eq!(limit("orders_per_account=300/3h"), Some((LimitName::OrdersPerAccount, Some(three))));
        assert_eq!(limit("failures_per_name=0/1s"), Some((LimitName::FailuresPerName, None)));
        for junk in ["", "orders=300/3h", "orders_per_account=300", "orders_per_account=-1/3h", "orders_per_account=3/0s"] {
            assert_eq!(limit(junk), None, "{junk}");
        }
    }
}
