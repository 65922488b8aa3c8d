//! CA accounts: the key is sealed and stored before the CA ever sees it, newAccount is made under the issuer's lease, and a
//! crash between the two is healed by asking again with the same key (RFC 8555 §7.3.1 answers with the account it has).

use std::time::Duration;

use super::{App, AppError};
use crate::acme::{AccountRef, AccountUrl, csr};
use crate::model::domain::Issuer;
use crate::model::id::IssuerId;
use crate::store::issuers::{self, IssuerRow};
use crate::telemetry::Chain;
use crate::vault::{Context, Sealed};

/// Longer than the calls that make an account can take.
const LEASE: Duration = Duration::from_secs(120);

fn context(id: &IssuerId) -> Context {
    Context::new("account-key", id.as_str())
}

/// Makes the accounts that are missing; how many there are now. A CA that does not answer is asked again next time, and one
/// issuer's trouble does not keep another from its account.
pub async fn ensure_all(app: &App) -> Result<usize, AppError> {
    let mut ready = 0;
    for issuer in issuers::list(&app.store).await? {
        if issuer.account_url.is_some() {
            ready += 1;
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
    let Some(authority) = app.authorities.get(&issuer.name) else {
        return Err(AppError::NoAuthority(issuer.name.clone()));
    };
    let Some(row) = issuers::take(&app.store, &issuer.id, &app.worker, app.env.now(), LEASE).await? else {
        return Ok(false);
    };
    app.boundary.cross("issuer's lease taken").await;
    if let Some(url) = &row.account_url {
        // Made by another process a moment ago: the lease goes back.
        issuers::store_account(&app.store, &row.id, row.term, url, &row.caa_identities).await?;
        return Ok(true);
    }
    let key = match row.account_key {
        Some(sealed) => app.vault.open(&context(&row.id), &Sealed::try_from(sealed)?)?,
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
        Ok(facts) => authority.register(&key, &app.settings.contacts).await.map(|url| (url, facts.caa_identities)),
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
            let said = Chain(&e).to_string();
            tracing::warn!(issuer.name = %row.name, error = %said, "the CA gave no account; asking again soon");
            issuers::store_account_problem(&app.store, &row.id, row.term, &said).await?;
            Ok(false)
        }
    }
}

/// The issuer's account with its key, opened for one call.
pub(super) fn open(app: &App, issuer: &Issuer) -> Result<AccountRef, AppError> {
    let (Some(url), Some(sealed)) = (&issuer.account_url, &issuer.sealed_account_key) else {
        return Err(AppError::NoAccount(issuer.name.clone()));
    };
    let key = app.vault.open(&context(&issuer.id), &Sealed::try_from(sealed.clone())?)?;
    Ok(AccountRef { url: AccountUrl(url.clone()), key })
}
