//! What the CAs still let us spend, from the rows of the ledger.

use crate::app::App;
use crate::model::ledger::{Bucket, Limit};
use crate::model::moment::Moment;
use crate::store::StoreResult;
use crate::store::fleet::queue;
use crate::store::issuers;

/// So many rows of an issuer's ledger are shown: the account's, and the emptiest.
const LEDGER_ROWS: i64 = 12;

/// One limit and key.
#[derive(Clone, Debug)]
pub struct Tokens {
    /// The limit.
    pub limit_name: String,
    /// The key.
    pub key: String,
    /// How many may be spent at once, and how often.
    pub limit: Limit,
    /// How many may be spent now.
    pub left: u32,
    /// Calls whose answers are not known.
    pub open: u32,
    /// When one more may be spent; now, where some are left.
    pub next_at: Moment,
    /// When all may be spent again, if nothing more is.
    pub full_at: Moment,
}

/// The budget at one issuer.
#[derive(Clone, Debug)]
pub struct Budget {
    /// The issuer.
    pub issuer: String,
    /// Its directory.
    pub directory: String,
    /// Whether it has an account.
    pub has_account: bool,
    /// Why there is none yet.
    pub account_problem: Option<String>,
    /// The CA lets nothing through before, where that is still to come.
    pub paused_until: Option<Moment>,
    /// Its limits.
    pub tokens: Vec<Tokens>,
}

/// The budgets of all issuers, the preferred first.
pub async fn budgets(app: &App) -> StoreResult<Vec<Budget>> {
    let now = app.env.now();
    let issuers = issuers::list(&app.store).await?;
    let mut tx = app.store.read().await?;
    let mut all = Vec::with_capacity(issuers.len());
    for issuer in issuers {
        let mut tokens = Vec::new();
        for row in queue::ledger(&mut tx, &issuer.id, LEDGER_ROWS).await? {
            let Some(limit) = issuer.limits.get(&row.limit_name).copied() else { continue };
            let bucket = Bucket { tat: row.tat, open: u32::try_from(row.open).unwrap_or(u32::MAX) };
            tokens.push(Tokens {
                limit_name: row.limit_name,
                key: row.key,
                limit,
                left: bucket.available(limit, now),
                open: bucket.open,
                next_at: bucket.earliest(limit, now),
                full_at: bucket.tat.max(now) + limit.interval() * bucket.open,
            });
        }
        all.push(Budget {
            has_account: issuer.account_url.is_some(),
            issuer: issuer.name,
            directory: issuer.directory,
            account_problem: issuer.account_problem,
            paused_until: (issuer.not_before > now).then_some(issuer.not_before),
            tokens,
        });
    }
    Ok(all)
}
