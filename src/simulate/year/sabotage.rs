//! What tests do to the world behind the application's back, so that each judge is seen to notice.

use std::time::Duration;

use super::super::SimulationError;
use super::Sabotage;
use super::run::Run;
use crate::store::sql;

/// The day on which it happens: names are served by then.
const DAY: u32 = 20;

/// Does it, if it is the day; what stops renewals does so every day from then on, since they begin anew by themselves.
pub(super) async fn at(run: &mut Run, day: u32) -> Result<(), SimulationError> {
    let Some(what) = run.options.sabotage.filter(|_| day >= DAY) else { return Ok(()) };
    if what.stops_renewals() {
        put_off(run).await?;
    }
    if what == Sabotage::SilenceTheLeft {
        // As where places go with their tenant, and not with its last name.
        let theirs = sql(
            "DELETE FROM deliveries WHERE endpoint_id IN (SELECT id FROM webhook_endpoints WHERE tenant_id IS NOT NULL)",
        );
        run.world.app.store.execute(theirs).await?;
        run.world.app.store.execute(sql("DELETE FROM webhook_endpoints WHERE tenant_id IS NOT NULL")).await?;
    }
    if day > DAY {
        return Ok(());
    }
    let app = &run.world.app;
    let served = |name: &&super::names::Name| name.trouble.is_none() && name.wanted.is_some();
    let Some(name) = run.names.all().iter().find(served).cloned() else { return Ok(()) };
    let host = name.host.to_string();
    let claim = name.wanted().map(|claim| (claim.id.to_string(), claim.tenant.clone()));
    let Some((id, tenant)) = claim else { return Ok(()) };
    match what {
        Sabotage::RouteToStranger => {
            let other = run.tenants.iter().find(|other| other.id != tenant).map(|other| other.id.clone());
            let stmt = sql("UPDATE routes SET tenant_id = $2 WHERE hostname = $1");
            let stmt = stmt.bind(host).bind(other.as_ref().map(|other| other.as_str()));
            app.store.execute(stmt).await?;
        }
        Sabotage::LetGo => {
            let stmt = sql("UPDATE domains SET claim = 'releasing', claim_since = $2, due_at = $2 WHERE id = $1");
            app.store.execute(stmt.bind(id).bind(run.world.now())).await?;
        }
        Sabotage::Forget => {
            // Everything that refers to it stays, as after a restore that lost a page.
            let stmt = sql("UPDATE domains SET hostname = 'lost.test' WHERE id = $1");
            app.store.execute(stmt.bind(id)).await?;
        }
        Sabotage::Free => {
            app.store.execute(sql("UPDATE holdings SET state = 'free' WHERE hostname = $1").bind(host)).await?;
        }
        Sabotage::SwallowAlerts => run.receiver.swallow(),
        Sabotage::DoubleAlerts => run.receiver.double(),
        Sabotage::SilenceTheLeft | Sabotage::StopRenewals => {}
    }
    Ok(())
}

/// Puts off by a day and a half whatever would lead to a renewal: no further, since nobody would believe it.
async fn put_off(run: &Run) -> Result<(), SimulationError> {
    let (store, until) = (&run.world.app.store, run.world.now() + Duration::from_secs(36 * 3600));
    store.execute(sql("UPDATE renewals SET renew_at = $1, poll_at = $1, switch_at = NULL").bind(until)).await?;
    store.execute(sql("UPDATE domains SET due_at = $1 WHERE claim = 'live'").bind(until)).await?;
    Ok(())
}
