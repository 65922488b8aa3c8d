//! The dispatcher: one round gives the grants of one issuer, under the lock of its row, in one transaction.

use super::{App, AppError};
use crate::mint;
use crate::model::dispatch::{Dispatched, Waiting, dispatch};
use crate::model::id::{DomainId, GrantId, IssuerId, OrderId};
use crate::model::ledger::{GRANT_LIFE, ORDERS_PER_ACCOUNT, UNANSWERED};
use crate::model::moment::Moment;
use crate::store::dispatching::{self, NewGrant, Terms, WaitingRow};
use crate::store::issuers;

/// One round for every issuer; when the next is due.
pub async fn round(app: &App) -> Result<Option<Moment>, AppError> {
    let mut next: Option<Moment> = None;
    for issuer in issuers::list(&app.store).await? {
        if let Some(at) = round_of(app, &issuer.id).await? {
            next = Some(next.map_or(at, |n| n.min(at)));
        }
    }
    Ok(next)
}

/// One round for one issuer.
async fn round_of(app: &App, id: &IssuerId) -> Result<Option<Moment>, AppError> {
    let mut tx = app.store.begin().await?;
    let Some(issuer) = issuers::lock(&mut tx, id).await? else { return Ok(None) };
    let now = app.env.now();
    dispatching::close_overdue(&mut tx, id, now).await?;
    let usable = issuer.account_url.is_some() && issuer.not_before <= now;
    let waiting = dispatching::waiting(&mut tx, id, now).await?;
    let later = dispatching::next_eligible(&mut tx, id, now).await?;
    let (Some(limit), false) = (issuer.limits.get(ORDERS_PER_ACCOUNT).copied(), waiting.is_empty()) else {
        tx.commit().await?;
        return Ok(later);
    };
    if !usable {
        tx.commit().await?;
        return Ok(issuer.account_url.is_some().then_some(issuer.not_before));
    }
    let bucket = dispatching::bucket(&mut tx, id, ORDERS_PER_ACCOUNT, "account", now).await?;
    let list: Vec<Waiting> = waiting.iter().map(|w| w.waiting.clone()).collect();
    let turn = u64::try_from(issuer.granted).unwrap_or(0);
    let given = dispatch(&list, bucket, limit, turn, now);
    let chosen = grants(app, &given, &waiting);
    let mut grants = Vec::new();
    if !chosen.is_empty() {
        let expires_at = now + GRANT_LIFE;
        let terms = Terms {
            issuer: id,
            limit_name: ORDERS_PER_ACCOUNT,
            key: "account",
            interval: limit.interval(),
            expires_at,
            spend_deadline: expires_at + UNANSWERED,
        };
        grants = dispatching::give(&mut tx, &terms, chosen, now).await?;
        for g in &grants {
            app.wake.wake(&mut tx, &g.domain_id, now).await?;
        }
    }
    app.boundary.cross("before the grants' commit").await;
    tx.commit().await?;
    app.meters.grants(grants.len());
    app.boundary.cross("grants given").await;
    if !grants.is_empty() {
        tracing::info!(issuer.name = %issuer.name, grants = grants.len(), waiting = given.places.len(), "grants given");
    }
    Ok(given.next_at().into_iter().chain(later).min())
}

fn grants(app: &App, given: &Dispatched, waiting: &[WaitingRow]) -> Vec<NewGrant> {
    let domain_of = |order: &OrderId| -> Option<DomainId> {
        waiting.iter().find(|w| w.waiting.order_id == *order).map(|w| w.domain_id.clone())
    };
    given
        .grants
        .iter()
        .filter_map(|order_id| {
            let domain_id = domain_of(order_id)?;
            Some(NewGrant { id: mint!(app.env, GrantId), order_id: order_id.clone(), domain_id })
        })
        .collect()
}
