//! Off-boarding: a tenant leaves, and nothing of it is served, ordered, renewed or reachable any more.
//!
//! One transaction says so: status, slug, canonical host, tokens. The status alone makes edges answer its names as unknown,
//! and is what `plan` sees: each claim lets go by itself through the one door, however many there are and wherever a process
//! dies. [`round`] only makes them due, a few hundred at a time, until none stands.

use futures::stream::{self, StreamExt as _};

use super::expect::Expect;
use super::{App, AppError, ask};
use crate::env::Env;
use crate::mint;
use crate::model::checks;
use crate::model::domain::Domain;
use crate::model::evidence::Check;
use crate::model::id::{DomainId, EventId, TenantId};
use crate::model::letting_go::Leads;
use crate::model::letting_go::records::{self, Left};
use crate::model::look::{Ask, Depth};
use crate::model::moment::Moment;
use crate::model::tenant::Tenant;
use crate::store::offboarding::{self, Progress};
use crate::store::{Store, StoreError, tenants};

/// Claims made due in one transaction.
const BATCH: i64 = 200;
/// Tenants taken off board at a time.
const TENANTS: i64 = 50;
/// While claims are still letting go, they are looked after this often.
const AGAIN: std::time::Duration = std::time::Duration::from_secs(2);
/// Names looked up at a time.
const LOOKS: usize = 16;

/// Why a tenant was not taken off board.
#[derive(Debug, thiserror::Error)]
pub enum OffboardError {
    /// No such tenant.
    #[error("there is no tenant {0}")]
    NotFound(TenantId),
    /// It is another version than the caller counted on.
    #[error("the tenant changed in the meantime: its version is {0} now; read it again and decide anew")]
    Changed(i64),
    /// Not the caller's fault.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A tenant that leaves.
#[derive(Clone, Debug)]
pub struct Leaving {
    /// The tenant, deleted.
    pub tenant: Tenant,
    /// Whether this call began it.
    pub new: bool,
    /// How far it is.
    pub progress: Progress,
}

/// Takes a tenant off board. There is no way back: the slug never returns. Asked again, it answers how far it is.
pub async fn begin(store: &Store, env: &Env, id: &TenantId, actor: &str) -> Result<Leaving, OffboardError> {
    begin_if(store, env, id, &Expect::ANY, actor).await
}

/// The same, if the tenant is as expected. One that has left already is told of, whatever it was expected to be.
pub async fn begin_if(
    store: &Store,
    env: &Env,
    id: &TenantId,
    expect: &Expect,
    actor: &str,
) -> Result<Leaving, OffboardError> {
    let now = env.now();
    let (event, told) = (mint!(env, EventId), mint!(env, EventId));
    let mut tx = store.begin().await?;
    let new = offboarding::begin(&mut tx, id, actor, now, [event.as_str(), told.as_str()]).await?;
    let missing = || OffboardError::NotFound(id.clone());
    let tenant = tenants::lookup(&mut tx, id).await?.ok_or_else(missing)?;
    if new && !expect.allows(tenant.version - 1) {
        return Err(OffboardError::Changed(tenant.version - 1));
    }
    let progress = offboarding::progress(&mut tx, id).await?.ok_or_else(missing)?;
    tx.commit().await?;
    if new {
        tracing::info!(tenant.id = %id, tenant.slug = %tenant.slug, claims = progress.open, "a tenant is taken off board");
    }
    Ok(Leaving { tenant, new, progress })
}

/// How far a tenant's off-boarding is; nothing for a tenant that is not leaving.
pub async fn progress(store: &Store, id: &TenantId) -> Result<Option<Progress>, StoreError> {
    offboarding::progress(&mut store.read().await?, id).await
}

/// Makes claims of leaving tenants due, a batch a tenant; when to come again, if any still stand.
pub async fn round(app: &App) -> Result<Option<Moment>, AppError> {
    let mut next: Option<Moment> = None;
    for tenant in offboarding::unfinished(&app.store, TENANTS).await? {
        let now = app.env.now();
        let mut tx = app.store.begin().await?;
        let due = offboarding::make_due(&mut tx, &tenant, now, BATCH).await?;
        for id in &due {
            app.wake.wake(&mut tx, id, now).await?;
        }
        app.boundary.cross("before claims are made due").await;
        tx.commit().await?;
        app.boundary.cross("claims made due").await;
        let full = i64::try_from(due.len()).is_ok_and(|n| n == BATCH);
        if due.is_empty() && offboarding::finish(&app.store, &tenant, now).await? {
            tracing::info!(tenant.id = %tenant, "every claim of this tenant is let go of");
            continue;
        }
        let at = if full { now } else { now + AGAIN };
        next = Some(next.map_or(at, |n| n.min(at)));
    }
    Ok(next)
}

/// A name that still leads to us although its tenant has left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dangling {
    /// The claim it was.
    pub domain: DomainId,
    /// The name.
    pub hostname: String,
    /// What was seen now, one line a fact.
    pub observed: Vec<String>,
}

/// Some of a tenant's former names, looked up just now.
#[derive(Clone, Debug, Default)]
pub struct LookedAt {
    /// Those that still lead to us.
    pub dangling: Vec<Dangling>,
    /// Those of which nothing could be learnt.
    pub unknown: Vec<String>,
    /// How many were looked at.
    pub looked: usize,
    /// Where to go on; nothing when these were the last.
    pub next: Option<DomainId>,
}

/// Looks whether DNS still sends a tenant's former names to us: up to `limit` of them after the claim `after`.
pub async fn dangling(app: &App, tenant: &TenantId, after: Option<&DomainId>, limit: i64) -> Result<LookedAt, AppError> {
    let rows = offboarding::left_behind(&app.store, tenant, after.map_or("", DomainId::as_str), limit).await?;
    let next = rows.last().filter(|_| i64::try_from(rows.len()).is_ok_and(|n| n == limit)).map(|d| d.id.clone());
    let mut names: Vec<Domain> = Vec::new();
    for row in rows {
        // A name claimed several times is looked at once, as it was claimed last.
        names.retain(|d| d.hostname != row.hostname);
        names.push(row);
    }
    let looked = names.len();
    let seen: Vec<_> = stream::iter(names)
        .map(|d| async move {
            let seen = look(app, &d).await;
            (d, seen)
        })
        .buffered(LOOKS)
        .collect()
        .await;
    let mut out = LookedAt { looked, next, ..LookedAt::default() };
    for (domain, way) in seen {
        let hostname = domain.hostname.to_string();
        match way.leads {
            Leads::Here => out.dangling.push(Dangling { domain: domain.id, hostname, observed: way.observed }),
            Leads::Unknown => out.unknown.push(hostname),
            Leads::Elsewhere => {}
        }
    }
    Ok(out)
}

/// What DNS says of the way of a former name.
pub(super) struct Way {
    /// Where it leads.
    pub(super) leads: Leads,
    /// What was seen of it, one line a fact.
    pub(super) observed: Vec<String>,
    /// The records at the name by which it leads here, if it does.
    pub(super) records: Vec<Left>,
}

/// One look at the way of a former name, through one resolver.
pub(super) async fn look(app: &App, domain: &Domain) -> Way {
    let mut question = Ask::new(domain.hostname.clone(), app.settings.platform.clone());
    question.depth = Depth::Routine;
    question.turn.tenant = Some(domain.tenant_id.clone());
    question.routing = Some(ask::routing(app, domain));
    let seen = app.look.look(&question).await;
    let finding = checks::judge(&question, &seen).into_iter().find(|f| f.check == Check::Routing);
    let (leads, observed) = finding.map_or((Leads::Unknown, Vec::new()), |f| (Leads::of(f.reason), f.observed));
    let records = records::leading_here(domain.hostname.as_str(), &question.platform, &seen);
    Way { leads, observed, records }
}
