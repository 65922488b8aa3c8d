//! The one document that shows a domain: API, page and command line all render it.

mod alerts;
mod budget;
mod build;
mod document;
mod imports;
mod listed;
mod pair;
mod portal;
mod record;
pub mod reissues;
pub(in crate::app) mod rfc3339;
pub mod words;

use crate::model::conclude::FRESH_EDGE;
use crate::model::id::{DomainId, TenantId};
use crate::model::moment::Moment;
use crate::model::records::ApexRoute;
use crate::model::sentence::Reader;
use crate::store::rollout::rollout;
use crate::store::views::{self, DomainFilter, DomainRow, EventFilter};
use crate::store::{Store, StoreResult, Tx};

pub use alerts::{AlertView, DeliveryView, WebhookView};
pub use budget::{BudgetView, LimitView};
pub use document::{
    AttemptView, CertificateView, CheckView, DomainSummary, DomainView, EventView, HeldView, OrderView, PartnerView,
    ProbeView, RenewalView, RolloutView, TenantRef,
};
pub use imports::{
    CheckedView, ClaimCounts, CollisionView, ImportRowView, ImportView, PlanView, PointView, VerdictCounts, import, imports,
};
pub use listed::{CertificateDocument, ContactView, EdgeView, OpenOrderView, PastAttempt, TenantView, TokenView};
pub use portal::{ListedDomain, certificate_names, history, listing, moved, of_import, position};

/// How many events a view carries; the rest is a page away.
const EVENTS: i64 = 100;

/// The view of one domain, from one snapshot.
pub async fn domain(store: &Store, apex: &ApexRoute, id: &DomainId, now: Moment) -> StoreResult<Option<DomainView>> {
    domain_in(&mut store.read().await?, apex, id, now).await
}

/// The same, with its sentence worded for the operator.
pub async fn domain_for_operator(
    store: &Store,
    apex: &ApexRoute,
    id: &DomainId,
    now: Moment,
) -> StoreResult<Option<DomainView>> {
    read(&mut store.read().await?, apex, id, (Reader::Operator, now)).await
}

/// The same as a transaction sees it.
pub async fn domain_in(tx: &mut Tx, apex: &ApexRoute, id: &DomainId, now: Moment) -> StoreResult<Option<DomainView>> {
    read(tx, apex, id, (Reader::Tenant, now)).await
}

async fn read(
    tx: &mut Tx,
    apex: &ApexRoute,
    id: &DomainId,
    (reader, now): (Reader, Moment),
) -> StoreResult<Option<DomainView>> {
    let Some(row) = views::domain(tx, id).await? else { return Ok(None) };
    let order = views::order(tx, id).await?;
    let rollout = rollout_of(tx, &row, now).await?;
    let events = views::domain_events(tx, id, EVENTS).await?;
    Ok(Some(build::view(row, order, rollout, events, apex, (reader, now))))
}

/// Whose domain this is, if it exists.
pub async fn owner(store: &Store, id: &DomainId) -> StoreResult<Option<TenantId>> {
    views::owner(&mut store.read().await?, id).await
}

/// Domains in order of their age.
pub async fn list(store: &Store, filter: &DomainFilter, limit: i64) -> StoreResult<Vec<DomainSummary>> {
    let rows = views::domains(&mut store.read().await?, filter, limit).await?;
    Ok(rows.into_iter().map(build::summary).collect())
}

/// The numbered stream of events.
pub async fn events(store: &Store, filter: &EventFilter, limit: i64) -> StoreResult<Vec<EventView>> {
    let rows = views::events_after(&mut store.read().await?, filter, limit).await?;
    Ok(rows.into_iter().map(build::event).collect())
}

/// The document of an event.
pub fn event_view(row: views::EventRow) -> EventView {
    build::event(row)
}

/// All attempts at proof of a domain, oldest first.
pub async fn attempts(store: &Store, id: &DomainId) -> StoreResult<Vec<PastAttempt>> {
    let rows = views::attempts(&mut store.read().await?, id).await?;
    Ok(rows.into_iter().map(PastAttempt::from).collect())
}

async fn rollout_of(tx: &mut Tx, row: &DomainRow, now: Moment) -> StoreResult<RolloutView> {
    let Some(certificate) = &row.certificate else { return Ok(RolloutView::default()) };
    let r = rollout(tx, "certificate", &certificate.id, now, FRESH_EDGE).await?;
    let behind = r.behind.into_iter().map(|(_, name)| name);
    let failing = r.exceptions.into_iter().map(|(id, observed)| format!("{id} ({observed})"));
    Ok(RolloutView { counted: r.counted, behind: behind.chain(failing).collect() })
}
