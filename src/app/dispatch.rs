//! The dispatcher: one round gives the grants of one issuer, under the lock of its row, in one transaction.
//!
//! A round reads no more than it can grant. What the account has spent comes first: where that leaves nothing, nothing else is
//! read. Of the queue it reads the heads of the lanes, and of the ledger the rows under their names. Orders whose own limits have
//! no room are set aside until those have, and the heads are read anew; so what is granted is what the whole queue and the
//! whole ledger would have led to.

use std::collections::HashMap;
use std::time::Duration;

use super::{App, AppError};
use crate::mint;
use crate::model::dispatch::{Dispatched, Waiting, dispatch};
use crate::model::id::{DomainId, GrantId, IssuerId, OrderId};
use crate::model::issuer::{Circuit, PATIENCE};
use crate::model::ledger::{Bucket, GRANT_LIFE, Limit, Spent, UNANSWERED};
use crate::model::limits::{ACCOUNT, LimitName, Limits, spends};
use crate::model::moment::Moment;
use crate::store::dispatching::{self, NewGrant, Terms};
use crate::store::heads::{WaitingRow, heads};
use crate::store::{StoreResult, Tx, issuer_health, issuers, ledger};

/// The most that one round grants.
const MOST: u32 = 1_000;
/// Names that could go to another issuer are looked at anew, so many a round, unless they were within this time.
const LOOKS: i64 = 50;
const LOOKED: Duration = Duration::from_secs(300);
/// So many pages of heads are gone through in one round; the next goes on at once.
const PAGES: usize = 50;

/// One round for every issuer; when the next is due.
pub async fn round(app: &App) -> Result<Option<Moment>, AppError> {
    let mut next: Option<Moment> = None;
    let all = issuers::list(&app.store).await?;
    let usable = all.iter().filter(|issuer| issuer.is_in_use() && issuer.account_url.is_some()).count();
    let mut failed = None;
    for issuer in all {
        match round_of(app, &issuer.id, usable > 1).await {
            Ok(at) => next = next.into_iter().chain(at).min(),
            // The others have their rounds all the same.
            Err(e) => failed = failed.or(Some(e)),
        }
    }
    failed.map_or(Ok(next), Err)
}

/// One round for one issuer.
async fn round_of(app: &App, id: &IssuerId, others: bool) -> Result<Option<Moment>, AppError> {
    let lined_up = app.env.now();
    dispatching::line_up(&app.store, id, lined_up).await?;
    let mut tx = app.store.begin().await?;
    let Some(issuer) = issuers::lock(&mut tx, id).await? else { return Ok(None) };
    let now = app.env.now();
    dispatching::close_overdue(&mut tx, id, now).await?;
    // The issuer's row may have been waited for: who became eligible meanwhile is in line with the next round, at once.
    let later = dispatching::next_eligible(&mut tx, id, lined_up).await?;
    let circuit = issuer_health::of(&mut tx, id).await?.circuit(now);
    let asks_none = matches!(circuit, Circuit::Open(_) | Circuit::Halted);
    let account = ledger::of_account(&mut tx, id).await?;
    // Whoever may go to another issuer is looked at anew, which chooses. Where the account is only used up, they wait: it refills.
    if others && (asks_none || account.closed_until > now + PATIENCE) {
        for id in issuers::look_anew(&mut tx, id, now - LOOKED, LOOKS, now).await? {
            app.wake.wake(&mut tx, &id, now).await?;
        }
    }
    if asks_none {
        tx.commit().await?;
        return Ok(if let Circuit::Open(until) = circuit { Some(until) } else { None });
    }
    let usable = issuer.account_url.is_some() && issuer.not_before <= now;
    if !usable || !dispatching::anybody(&mut tx, id, now).await? {
        tx.commit().await?;
        let again = (issuer.account_url.is_some() && issuer.not_before > now).then_some(issuer.not_before);
        return Ok(again.or(later));
    }
    // A CA that failed is asked for one order at a time until it answers.
    let probing = circuit == Circuit::Probing;
    if probing && dispatching::is_asking(&mut tx, id).await? {
        tx.commit().await?;
        return Ok(later);
    }
    let limit = issuer.limits.get(&LimitName::OrdersPerAccount).copied();
    let free = room(account, limit, now).min(if probing { 1 } else { MOST });
    if free == 0 {
        tx.commit().await?;
        return Ok(Some(account.opens_at(limit, now)));
    }
    let turn = u64::try_from(issuer.granted).unwrap_or(0);
    let mut grants = Vec::new();
    let mut next = later;
    for page in 1..=PAGES {
        // One more than can be granted, so that there is somebody to tell when the next round is due.
        let heads = heads(&mut tx, id, now, free + 1).await?;
        let spent = spent_by(&mut tx, id, account, &heads).await?;
        let waiting: Vec<Waiting> = heads.iter().map(|h| h.waiting.clone()).collect();
        let given = dispatch(&waiting, &issuer.limits, &spent, turn, now);
        let held: Vec<(OrderId, LimitName, Moment)> = given
            .places
            .iter()
            .filter_map(|p| p.held.filter(|(_, room)| *room > now).map(|(limit, room)| (p.order_id.clone(), limit, room)))
            .collect();
        if others {
            let long = held.iter().filter(|(.., room)| *room > now + PATIENCE).map(|(order, ..)| order);
            let long: Vec<DomainId> = domains_of(long, &heads);
            for id in &long {
                app.wake.wake(&mut tx, id, now).await?;
            }
            issuers::ask_for_looks(&mut tx, &long, now).await?;
        }
        // After their domains, as steps lock them.
        dispatching::hold(&mut tx, &held).await?;
        let rooms = held.iter().map(|(.., room)| *room).min();
        next = next.into_iter().chain(rooms).min();
        // Whoever was set aside made room for others, whom nobody has read yet: it is they who may come first.
        if !held.is_empty() && page < PAGES {
            continue;
        }
        if !given.grants.is_empty() {
            let expires_at = now + GRANT_LIFE;
            let terms = Terms { issuer: id, turn, expires_at, spend_deadline: expires_at + UNANSWERED };
            let chosen = chosen(app, &given, &heads, &issuer.limits);
            grants = dispatching::give(&mut tx, &terms, chosen, now).await?;
        }
        next = if held.is_empty() { given.next_at().into_iter().chain(next).min() } else { Some(now) };
        break;
    }
    for g in &grants {
        app.wake.wake(&mut tx, &g.domain_id, now).await?;
    }
    app.boundary.cross("before the grants' commit").await;
    tx.commit().await?;
    app.meters.grants(grants.len());
    app.boundary.cross("grants given").await;
    if !grants.is_empty() {
        tracing::info!(issuer.name = %issuer.name, grants = grants.len(), "grants given");
    }
    Ok(next)
}

/// What the account and the names of the heads have spent.
async fn spent_by(tx: &mut Tx, id: &IssuerId, account: Bucket, heads: &[WaitingRow]) -> StoreResult<Spent> {
    let names = heads.iter().map(|h| &h.waiting.name);
    let keys = names.flat_map(|name| [name.registered_domain(), name.as_str()]);
    let mut spent = ledger::of_keys(tx, id, keys).await?;
    spent.insert((LimitName::OrdersPerAccount, ACCOUNT.to_owned()), account);
    Ok(spent)
}

fn domains_of<'a>(orders: impl Iterator<Item = &'a OrderId>, heads: &[WaitingRow]) -> Vec<DomainId> {
    let by_order: HashMap<&OrderId, &DomainId> = heads.iter().map(|h| (&h.waiting.order_id, &h.domain_id)).collect();
    orders.filter_map(|order| by_order.get(order).map(|id| (*id).clone())).collect()
}

/// How many orders the account may make now.
fn room(account: Bucket, limit: Option<Limit>, now: Moment) -> u32 {
    match limit {
        Some(limit) => account.available(limit, now).min(MOST),
        None if account.closed_until > now => 0,
        None => MOST,
    }
}

fn chosen(app: &App, given: &Dispatched, heads: &[WaitingRow], limits: &Limits) -> Vec<NewGrant> {
    let by_order: HashMap<&OrderId, &WaitingRow> = heads.iter().map(|h| (&h.waiting.order_id, h)).collect();
    let grant = |order_id: &OrderId| {
        let head = by_order.get(order_id)?;
        Some(NewGrant {
            id: mint!(app.env, GrantId),
            order_id: order_id.clone(),
            domain_id: head.domain_id.clone(),
            tenant_id: head.waiting.tenant_id.clone(),
            lane: head.waiting.lane,
            spends: spends(limits, &head.waiting.name)
                .map(|(limit, numbers, key)| (limit, numbers, key.to_owned()))
                .collect(),
        })
    };
    given.grants.iter().filter_map(grant).collect()
}
