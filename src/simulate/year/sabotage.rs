//! What tests do to the world behind the application's back, so that each judge is seen to notice.

use super::super::SimulationError;
use super::Sabotage;
use super::run::Run;
use crate::model::moment::Moment;
use crate::store::sql;

/// The day on which it happens: names are served by then.
const DAY: u32 = 20;

/// Does it, if it is the day.
pub(super) async fn at(run: &mut Run, day: u32) -> Result<(), SimulationError> {
    let Some(what) = run.options.sabotage.filter(|_| day == DAY) else { return Ok(()) };
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
        // Without renewals there are alerts to be swallowed, or doubled.
        Sabotage::StopRenewals | Sabotage::SwallowAlerts | Sabotage::DoubleAlerts => {
            let never = Moment::NEVER;
            let stmt = sql("UPDATE renewals SET renew_at = $1, poll_at = $1, switch_at = NULL");
            app.store.execute(stmt.bind(never)).await?;
            app.store.execute(sql("UPDATE domains SET due_at = $1 WHERE claim = 'live'").bind(never)).await?;
        }
    }
    match what {
        Sabotage::SwallowAlerts => run.receiver.swallow(),
        Sabotage::DoubleAlerts => run.receiver.double(),
        _ => {}
    }
    Ok(())
}
