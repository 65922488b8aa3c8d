//! CA accounts: the key is sealed and stored before the CA ever sees it, newAccount is made under the issuer's lease, and a
//! crash between the two is healed by asking again with the same key (RFC 8555 §7.3.1 answers with the account it has). The
//! same holds for the key that follows it: stored, told, and only then used.

use std::sync::Arc;
use std::time::Duration;

use super::authorities::CaPlace;
use super::{App, AppError};
use crate::acme::{AccountRef, AccountStatus, AccountUrl, AcmeError, Authority, Binding, Class, csr};
use crate::model::domain::Issuer;
use crate::model::id::IssuerId;
use crate::model::pace;
use crate::model::secret::Secret;
use crate::store::issuer_health;
use crate::store::issuers::{self, IssuerRow};
use crate::telemetry::Chain;
use crate::vault::{Context, Sealed, Vault, VaultError};

/// Longer than the calls that make an account can take.
const LEASE: Duration = Duration::from_secs(120);
/// A CA that said no is asked again this much later: asking costs there (Let's Encrypt: ten new accounts an address in three
/// hours). One that could not be reached is asked soon, and less and less often.
const LATER: Duration = Duration::from_secs(10 * 60);

fn context(id: &IssuerId) -> Context {
    Context::new("account-key", id.as_str())
}

/// Seals the key of an account that the CA keeps elsewhere, for the issuer of this name.
pub fn seal_binding(vault: &Vault, env: &crate::env::Env, issuer: &str, hmac: &Secret) -> Result<Vec<u8>, VaultError> {
    Ok(vault.seal(env, &Context::new("account-binding", issuer), hmac)?.as_bytes().to_vec())
}

/// Makes the accounts that are missing; how many there are now. A CA that does not answer is asked again next time, and one
/// issuer's trouble does not keep another from its account.
pub async fn ensure_all(app: &App) -> Result<usize, AppError> {
    let mut ready = 0;
    let health = issuer_health::all(&app.store).await?;
    for issuer in issuers::list(&app.store).await?.into_iter().filter(IssuerRow::is_in_use) {
        if issuer.account_url.is_some() {
            ready += 1;
            let due = health.get(&issuer.id).filter(|h| h.halted.is_some()).and_then(|h| h.check_at);
            if due.is_some_and(|at| at <= app.env.now())
                && let Err(e) = ask_again(app, &issuer).await
            {
                tracing::warn!(issuer.name = %issuer.name, error = %Chain(&e), "the account could not be asked about");
            }
            continue;
        }
        match ensure(app, &issuer).await {
            Ok(made) => ready += usize::from(made),
            Err(e) => tracing::warn!(issuer.name = %issuer.name, error = %Chain(&e), "this issuer has no account"),
        }
    }
    Ok(ready)
}

async fn ensure(app: &App, issuer: &IssuerRow) -> Result<bool, AppError> {
    let Some(row) = issuers::take(&app.store, &issuer.id, &app.worker, app.env.now(), LEASE).await? else {
        return Ok(false);
    };
    app.boundary.cross("issuer's lease taken").await;
    if let Some(url) = &row.account_url {
        // Made by another process a moment ago: the lease goes back.
        issuers::store_account(&app.store, &row.id, row.term, url, &row.caa_identities).await?;
        return Ok(true);
    }
    let authority = match app.authorities.of(&CaPlace::of_row(&row)) {
        Ok(authority) => authority,
        Err(e) => {
            let said = Chain(&e).to_string();
            return none_given(app, &row, &said, None).await;
        }
    };
    let key = match &row.account_key {
        Some(sealed) => app.vault.open(&context(&row.id), &Sealed::try_from(sealed.clone())?)?,
        None => {
            let key = csr::new_account_key(&app.env)?;
            let sealed = app.vault.seal(&app.env, &context(&row.id), &key)?;
            if !issuers::store_account_key(&app.store, &row.id, row.term, sealed.as_bytes().to_vec()).await? {
                return Ok(false);
            }
            app.boundary.cross("account key stored").await;
            key
        }
    };
    let made = match authority.directory().await {
        Ok(facts) => register(app, &row, &authority, &key).await?.map(|url| (url, facts.caa_identities)),
        Err(e) => Err(e),
    };
    app.boundary.cross("account made").await;
    match made {
        Ok((url, identities)) => {
            issuers::store_account(&app.store, &row.id, row.term, &url.0, &identities).await?;
            let now = app.env.now();
            let mut tx = app.store.begin().await?;
            for id in issuers::tell_waiting(&mut tx, now).await? {
                app.wake.wake(&mut tx, &id, now).await?;
            }
            tx.commit().await?;
            tracing::info!(issuer.name = %row.name, account.url = %url.0, "the CA account is ready");
            app.bells.dispatch.notify_one();
            Ok(true)
        }
        Err(e) => {
            let wait = match e.class() {
                Class::RetryAt(Some(told)) => Some(told),
                Class::RetryAt(None) if e.is_rate_limited() => Some(LATER),
                Class::WaitFor(_) | Class::GiveUp => Some(LATER),
                _ => None,
            };
            let said = Chain(&e).to_string();
            none_given(app, &row, &said, wait).await
        }
    }
}

/// There is no account, for this reason; the CA is asked again after `wait`, or after a wait that grows.
async fn none_given(app: &App, row: &IssuerRow, said: &str, wait: Option<Duration>) -> Result<bool, AppError> {
    tracing::warn!(issuer.name = %row.name, error = %said, "the CA gave no account");
    let wait = wait.unwrap_or_else(|| pace::ask_again_in(row.account_failures.saturating_add(1)));
    issuers::store_account_problem(&app.store, &row.id, row.term, said, app.env.now() + wait).await?;
    Ok(false)
}

/// An account that could not be used may be well again: the CA is asked, seldom, and says so itself.
async fn ask_again(app: &App, issuer: &IssuerRow) -> Result<(), AppError> {
    let authority = app.authorities.of(&CaPlace::of_row(issuer))?;
    let Some(row) = issuers::take(&app.store, &issuer.id, &app.worker, app.env.now(), LEASE).await? else { return Ok(()) };
    let found = examine(&app.vault, authority.as_ref(), &row).await;
    let said = match found {
        Ok(None | Some(AccountStatus::Valid)) => None,
        Ok(Some(status)) => Some(format!("the CA says that the account is {status:?}").to_lowercase()),
        Err(e) => Some(Chain(&e).to_string()),
    };
    match said {
        None => {
            issuer_health::account_is_well(&app.store, &row.id).await?;
            tracing::info!(issuer.name = %row.name, "the CA says that the account is well: orders go on");
            app.bells.dispatch.notify_one();
        }
        Some(said) => {
            tracing::error!(issuer.name = %row.name, error = %said, "the CA account cannot be used: nothing is ordered there");
            issuer_health::account_is_not_well(&app.store, &row.id, &said, app.env.now()).await?;
        }
    }
    Ok(issuers::give_back(&app.store, &row.id, row.term).await?)
}

async fn register(
    app: &App,
    row: &IssuerRow,
    authority: &Arc<dyn Authority>,
    key: &Secret,
) -> Result<Result<AccountUrl, AcmeError>, AppError> {
    Ok(match &row.binding {
        None => authority.register(key, &row.contacts).await,
        Some((key_id, sealed)) => {
            let context = Context::new("account-binding", &row.name);
            let hmac = app.vault.open(&context, &Sealed::try_from(sealed.clone())?)?;
            authority.register_bound(key, &row.contacts, &Binding { key_id: key_id.clone(), hmac }).await
        }
    })
}

/// The issuer's account with its key, opened for one call.
pub(super) fn open(app: &App, issuer: &Issuer) -> Result<AccountRef, AppError> {
    let (Some(url), Some(sealed)) = (&issuer.account_url, &issuer.sealed_account_key) else {
        return Err(AppError::NoAccount(issuer.name.clone()));
    };
    opened(&app.vault, &issuer.id, url, sealed)
}

/// The account of an issuer's row; none where there is none.
pub(super) fn of_row(app: &App, row: &IssuerRow) -> Result<Option<AccountRef>, AppError> {
    let (Some(url), Some(sealed)) = (&row.account_url, &row.account_key) else { return Ok(None) };
    opened(&app.vault, &row.id, url, sealed).map(Some)
}

fn opened(vault: &Vault, id: &IssuerId, url: &str, sealed: &[u8]) -> Result<AccountRef, AppError> {
    let key = vault.open(&context(id), &Sealed::try_from(sealed.to_vec())?)?;
    Ok(AccountRef { url: AccountUrl(url.to_owned()), key })
}

/// How an issuer's account stands at its CA.
pub async fn examine(vault: &Vault, authority: &dyn Authority, row: &IssuerRow) -> Result<Option<AccountStatus>, AppError> {
    let (Some(url), Some(sealed)) = (&row.account_url, &row.account_key) else { return Ok(None) };
    Ok(Some(authority.account(&opened(vault, &row.id, url, sealed)?).await?))
}

/// Why an account got no new key.
#[derive(Debug, thiserror::Error)]
pub enum RollError {
    /// There is no account to give one to.
    #[error("the issuer {0:?} has no account yet: `nameplate serve` opens it")]
    NoAccount(String),
    /// Another process has it in hand.
    #[error("another process has the account of {0:?} in hand; try again in two minutes")]
    Busy(String),
    /// The CA said no.
    #[error("the account keeps the key that it has: the CA takes no other")]
    Refused(#[source] AppError),
    /// The CA, the store or the vault.
    #[error(
        "the account has its old key still, or has the new one already: run the command again, it goes on where it stopped"
    )]
    Stopped(#[from] AppError),
}

/// Gives an issuer's account another key. The new key is stored before the CA hears of it, so that whatever is cut off where,
/// one of the two stored keys is the account's; a second run finds out which and goes on.
pub async fn roll_key(app: &RollWith<'_>, authority: &dyn Authority, row: &IssuerRow, owner: &str) -> Result<(), RollError> {
    let stopped = |e: crate::store::StoreError| RollError::Stopped(e.into());
    if row.account_url.is_none() || row.account_key.is_none() {
        return Err(RollError::NoAccount(row.name.clone()));
    }
    let taken = issuers::take(app.store, &row.id, owner, app.env.now(), LEASE).await.map_err(stopped)?;
    let row = taken.ok_or_else(|| RollError::Busy(row.name.clone()))?;
    let done = roll(app, authority, &row).await;
    if done.is_err() {
        // The lease is no use to anybody; where it cannot be given back it runs out.
        let _ = issuers::give_back(app.store, &row.id, row.term).await;
    }
    done
}

/// What rolling a key needs.
pub struct RollWith<'a> {
    /// Time and chance.
    pub env: &'a crate::env::Env,
    /// The store.
    pub store: &'a crate::store::Store,
    /// The vault.
    pub vault: &'a Vault,
}

async fn roll(app: &RollWith<'_>, authority: &dyn Authority, row: &IssuerRow) -> Result<(), RollError> {
    let no_account = || AppError::NoAccount(row.name.clone());
    let stopped = |e: crate::store::StoreError| AppError::from(e);
    let (url, old) = row.account_url.as_ref().zip(row.account_key.as_ref()).ok_or_else(no_account)?;
    let old = opened(app.vault, &row.id, url, old)?;
    let next = match &row.next_account_key {
        Some(sealed) => opened(app.vault, &row.id, url, sealed)?,
        None => {
            let key = csr::new_account_key(app.env).map_err(AppError::from)?;
            let sealed = app.vault.seal(app.env, &context(&row.id), &key).map_err(AppError::from)?;
            let sealed = sealed.as_bytes().to_vec();
            if !issuers::store_next_key(app.store, &row.id, row.term, sealed).await.map_err(stopped)? {
                return Err(no_account().into());
            }
            AccountRef { url: old.url.clone(), key }
        }
    };
    // A run before this one may have been cut off after the CA took the key.
    let known = row.next_account_key.is_some() && authority.account(&next).await.is_ok();
    if !known && let Err(refusal) = authority.change_key(&old, &next.key).await {
        // Whether it was taken by a run before this one is for the CA to say: only where it knows the old key is the new one waste.
        let waste = !refusal.acted_on && authority.account(&old).await.is_ok();
        if !waste {
            return Err(AppError::from(refusal).into());
        }
        issuers::forget_next_key(app.store, &row.id, row.term).await.map_err(stopped)?;
        return Err(RollError::Refused(refusal.into()));
    }
    issuers::promote_next_key(app.store, &row.id, row.term).await.map_err(stopped)?;
    Ok(())
}
