//! Replacing certificates out of turn: what an operator does after a CA's mistake, or before it is left.

use std::time::Duration;

use serde::Serialize;

use crate::env::Env;
use crate::model::limits::{ACCOUNT, LimitName};
use crate::model::moment::Moment;
use crate::store::reissues::{self, Selection};
use crate::store::{Store, StoreResult, issuers, ledger};

/// Names are looked at anew before they are ordered for: so many a second begin.
const A_SECOND: u32 = 10;

/// What was begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Begun {
    /// Its id; none for a dry run, or where nothing was selected.
    pub id: Option<String>,
    /// How many certificates it is about.
    pub certificates: u64,
}

/// A selection in words.
fn in_words(selection: &Selection) -> String {
    match selection {
        Selection::Issuer(name) => format!("issued by {name}"),
        Selection::Serials(serials) => format!("{} serial numbers", serials.len()),
        Selection::Before(at) => format!("valid from before {at}"),
    }
}

/// Marks what is selected; nothing is marked in a dry run. What is on its way already is left out.
pub async fn begin(store: &Store, env: &Env, selection: &Selection, actor: &str, dry: bool) -> StoreResult<Begun> {
    let selected = reissues::select(store, selection).await?;
    if dry || selected.is_empty() {
        return Ok(Begun { id: None, certificates: u64::try_from(selected.len()).unwrap_or(u64::MAX) });
    }
    let now = env.now();
    let apart = Duration::from_secs(1) / A_SECOND;
    let due = |n: usize| now + apart * u32::try_from(n).unwrap_or(u32::MAX);
    let these: Vec<_> = selected.into_iter().enumerate().map(|(n, s)| (s, due(n))).collect();
    let id = format!("rei_{}", env.draw_hex(16));
    let certificates = reissues::mark(store, &id, &in_words(selection), actor, &these, now).await?;
    Ok(Begun { id: Some(id), certificates })
}

/// How far a replacement is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// Its id.
    pub id: String,
    /// What was selected.
    pub selection: String,
    /// Who asked for it.
    pub actor: String,
    /// How many certificates it is about.
    pub certificates: i64,
    /// How many are not replaced yet.
    pub left: i64,
    /// When it was begun.
    pub created_at: String,
    /// When it was given up, if it was.
    pub cancelled_at: Option<String>,
    /// By when the order budget will have had room for what is left, if nothing else is ordered and nothing is exempt.
    pub room_by: Option<String>,
}

/// All replacements, the latest first.
pub async fn list(store: &Store, env: &Env) -> StoreResult<Vec<Progress>> {
    let now = env.now();
    let mut all = Vec::new();
    for row in reissues::list(store).await? {
        let room_by = match row.left {
            0 => None,
            left => room_by(store, left, now).await?,
        };
        all.push(Progress {
            id: row.id,
            selection: row.selection,
            actor: row.actor,
            certificates: row.certificates,
            left: row.left,
            created_at: row.created_at.rfc3339(),
            cancelled_at: row.cancelled_at.map(Moment::rfc3339),
            room_by: room_by.map(Moment::rfc3339),
        });
    }
    Ok(all)
}

/// When the preferred issuer will have had room for so many orders.
async fn room_by(store: &Store, left: i64, now: Moment) -> StoreResult<Option<Moment>> {
    let Some(issuer) = issuers::list(store).await?.into_iter().find(|i| i.is_in_use() && i.account_url.is_some()) else {
        return Ok(None);
    };
    let Some(limit) = issuer.limits.get(&LimitName::OrdersPerAccount).copied() else { return Ok(Some(now)) };
    let mut tx = store.read().await?;
    let spent = ledger::of_keys(&mut tx, &issuer.id, [ACCOUNT]).await?;
    let bucket = spent.get(&(LimitName::OrdersPerAccount, ACCOUNT.to_owned())).copied().unwrap_or_default();
    let before = limit.interval() * u32::try_from(left - 1).unwrap_or(u32::MAX);
    let ahead = bucket.tat.max(now) + limit.interval() * bucket.open + before;
    Ok(Some((ahead - limit.tolerance()).max(now)))
}
