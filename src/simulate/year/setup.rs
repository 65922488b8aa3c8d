//! What a year begins with: edges, the CA, the receiver of webhooks.

use std::sync::Arc;
use std::time::Duration;

use super::super::SimulationError;
use super::super::world::{SERVER, World};
use super::edges::{Edge, Fleet};
use super::names::ca_may_issue;
use super::receiver::Receiver;
use super::run::DAY;
use super::{YearOptions, left};
use crate::app::notify::{Notifier, NotifySettings};
use crate::app::webhooks::{self, NewWebhook};
use crate::mint;
use crate::model::feed::Position;
use crate::model::hook_url::HookRules;
use crate::model::id::{EdgeId, TenantId};
use crate::store::edges;

/// What the platform's place is told.
const KINDS: [&str; 11] = [
    "certificate_ending",
    "certificate_safe",
    "renewal_at_risk",
    "renewal_safe",
    "tie_held",
    "tie_weakened",
    "tie_lost",
    "handed_over",
    "removed",
    "alert_raised",
    "alert_resolved",
];
/// What a tenant's own place is told.
const TENANTS_KINDS: [&str; 3] = ["removed", "name_dangles", "name_let_go"];
const RECEIVER: &str = "receiver.test";

/// Another edge beside the one that the world has, which may lag.
pub(super) async fn fleet(world: &World) -> Result<Fleet, SimulationError> {
    let app = &world.app;
    let epoch = world.cursor.epoch;
    let id = mint!(app.env, EdgeId);
    app.store.execute(edges::insert(&id, "edge-2", &[2], &[2], app.env.now())).await?;
    let all = [world.edge.clone(), id].into_iter().map(|id| Edge::new(id, Position { epoch, seq: 0 })).collect();
    let preflight = world.front.shown().preflight.take().ok_or(SimulationError::NoKey)?;
    Ok(Fleet::new(all, preflight, app.env.now()))
}

/// What the CA issues, and how it fetches tokens.
pub(super) fn ca(options: &YearOptions, world: &World, fleet: &Fleet) {
    world.direct.state().live_for(DAY * options.certificate_days, Duration::from_secs(3600));
    let (zones, front) = (world.zones.clone(), fleet.clone());
    world.direct.fetch_by(Arc::new(move |host, token| if ca_may_issue(&zones, host) { front.answer(token) } else { None }));
}

/// The platform's place, and whoever sends to it.
pub(super) async fn notifier(world: &World, receiver: &Receiver) -> Result<Notifier, SimulationError> {
    world.zones.add_zone(RECEIVER, &format!("ns.{RECEIVER}"), SERVER);
    world.zones.add(&format!("hooks.{RECEIVER}. 60 IN A 203.0.113.7"))?;
    place(world, None, "/alerts", &KINDS).await?;
    Ok(Notifier::new(world.worker("notifier"), Arc::new(receiver.clone()), None, NotifySettings::default()))
}

/// A tenant's own place.
pub(super) async fn place_of(world: &World, tenant: &TenantId) -> Result<(), SimulationError> {
    place(world, Some(tenant.clone()), &left::place_of(tenant.as_str()), &TENANTS_KINDS).await
}

async fn place(world: &World, tenant: Option<TenantId>, path: &str, kinds: &[&str]) -> Result<(), SimulationError> {
    let app = &world.app;
    let kinds: Vec<String> = kinds.iter().map(|kind| (*kind).to_owned()).collect();
    let url = format!("https://hooks.{RECEIVER}{path}");
    let mut tx = app.store.begin().await?;
    let new = NewWebhook { tenant, url: &url, kinds: &kinds };
    webhooks::add_in(&mut tx, app, &HookRules::default(), new, "simulation").await?;
    tx.commit().await?;
    Ok(())
}
