//! Which of several issuers a name goes to, decided with each look at its records: by preference, by what CAA says of each, by
//! whether the CA answers, and by whether it has room for the name.

use std::collections::HashMap;

use super::{App, AppError};
use crate::model::checks;
use crate::model::domain::{Issuer, Situation};
use crate::model::evidence::{Check, Finding, Verdict};
use crate::model::id::IssuerId;
use crate::model::issuer::{Candidate, Circuit, Health, PATIENCE, choose};
use crate::model::limits::{ACCOUNT, LimitName};
use crate::model::look::{Ask, Seen};
use crate::model::moment::Moment;
use crate::model::order::OrderState;
use crate::store::issuers::{self, IssuerRow};
use crate::store::{issuer_health, ledger};

/// Sets the issuer of the situation to the one that the name goes to now, and the finding on CAA to what was found for that one.
/// What is on its way at a CA stays there, and with one issuer there is nothing to choose.
pub(super) async fn of_issuer(
    app: &App,
    s: &mut Situation,
    ask: &Ask,
    seen: &Seen,
    findings: &mut Vec<Finding>,
) -> Result<(), AppError> {
    let movable = s.order.as_ref().is_none_or(|o| matches!(o.state, OrderState::Waiting | OrderState::Granted));
    if !movable || ask.caa.is_none() {
        return Ok(());
    }
    let rows: Vec<IssuerRow> = issuers::list(&app.store).await?.into_iter().filter(IssuerRow::is_in_use).collect();
    let rows: Vec<IssuerRow> = rows.into_iter().filter(|row| row.account_url.is_some()).collect();
    if rows.len() < 2 && rows.iter().all(|row| row.id == s.issuer.id) {
        return Ok(());
    }
    let health = issuer_health::all(&app.store).await?;
    let now = app.env.now();
    let mut candidates = Vec::with_capacity(rows.len());
    let mut of_caa = Vec::with_capacity(rows.len());
    for row in &rows {
        let found: Vec<Finding> = caa_for(row, ask, seen);
        let caa = found.iter().map(Finding::verdict).find(|v| *v != Verdict::Pass).unwrap_or(Verdict::Pass);
        candidates.push(Candidate { caa, ready_at: ready_at(app, s, row, &health, now).await? });
        of_caa.push(found);
    }
    let Some(n) = choose(&candidates, now).filter(|n| rows[*n].id != s.issuer.id) else { return Ok(()) };
    tracing::info!(hostname.name = %s.domain.hostname, from = %s.issuer.name, to = %rows[n].name, "another issuer is chosen");
    findings.retain(|f| f.check != Check::Caa);
    findings.append(&mut of_caa[n]);
    s.issuer = issuer(&rows[n], &health);
    Ok(())
}

/// What the records that were seen say of this issuer.
fn caa_for(row: &IssuerRow, ask: &Ask, seen: &Seen) -> Vec<Finding> {
    let mut ask = ask.clone();
    ask.ownership = None;
    ask.routing = None;
    if let Some(caa) = &mut ask.caa {
        caa.issuers.clone_from(&row.caa_identities);
        caa.account_uri.clone_from(&row.account_url);
    }
    let mut found = checks::judge(&ask, seen);
    found.retain(|f| f.check == Check::Caa);
    found
}

/// When the issuer can be asked and its limits have room for the name. An account that the CA closed has none; one that we used up
/// has soon: who waits there has a place in the queue.
async fn ready_at(
    app: &App,
    s: &Situation,
    row: &IssuerRow,
    health: &HashMap<IssuerId, Health>,
    now: Moment,
) -> Result<Moment, AppError> {
    let answers = match health.get(&row.id).map_or(Circuit::Closed, |h| h.circuit(now)) {
        Circuit::Closed => now,
        // Whoever can go elsewhere does not wait for a CA that may come back.
        Circuit::Probing | Circuit::Open(_) => now + PATIENCE * 2,
        Circuit::Halted => Moment::NEVER,
    };
    let name = &s.domain.hostname;
    let mut tx = app.store.read().await?;
    let spent = ledger::of_keys(&mut tx, &row.id, [ACCOUNT, name.registered_domain(), name.as_str()]).await?;
    drop(tx);
    // The spends of an order of its own do not stand in its way.
    let own = u32::from(s.order.as_ref().is_some_and(|o| o.state == OrderState::Granted && o.issuer_id == row.id));
    let room = LimitName::ALL.iter().map(|limit| {
        let mut bucket = spent.get(&(*limit, limit.key(name).to_owned())).copied().unwrap_or_default();
        bucket.open = bucket.open.saturating_sub(own);
        let numbers = row.limits.get(limit).filter(|_| *limit != LimitName::OrdersPerAccount);
        bucket.opens_at(numbers.copied(), now)
    });
    Ok(room.fold(answers, Moment::max))
}

fn issuer(row: &IssuerRow, health: &HashMap<IssuerId, Health>) -> Issuer {
    Issuer {
        id: row.id.clone(),
        name: row.name.clone(),
        directory: row.directory.clone(),
        caa_identities: row.caa_identities.clone(),
        account_url: row.account_url.clone(),
        sealed_account_key: row.account_key.clone(),
        limits: row.limits.clone(),
        roots: row.roots.clone(),
        profile: row.profile.clone(),
        clouded: health.get(&row.id).is_some_and(Health::is_clouded),
        honours_replaces: row.honours_replaces,
    }
}
