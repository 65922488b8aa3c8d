//! Documents of bulk imports.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{rfc3339, words};
use crate::model::bulk::{Format, ImportState, Verdict};
use crate::model::bulk_plan::Plan;
use crate::model::claim::Claim;
use crate::model::id::{DomainId, ImportId, TenantId};
use crate::model::moment::Moment;
use crate::store::bulk::{self, Import};
use crate::store::bulk_rows::ImportRow;
use crate::store::{StoreResult, Tx, bulk_checks};

/// A file of names, and how far it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Import)]
pub struct ImportView {
    /// Its id.
    #[schema(value_type = String, pattern = "^imp_[0-9a-f]{32}$", example = "imp_019b0000000070008000000000000001")]
    pub id: ImportId,
    /// What people call it: the file's name as a rule.
    pub name: String,
    /// How the file is written.
    #[schema(schema_with = words::import_format)]
    pub format: Format,
    /// Whether nothing is claimed: each row only gets the verdict that it would get.
    pub dry_run: bool,
    /// Whether tenants that rows name and that are not there are added.
    pub create_tenants: bool,
    /// The tenant whose import it is; null for an operator's.
    #[schema(required, value_type = Option<String>)]
    pub tenant_id: Option<TenantId>,
    /// Where it stands: `receiving` until the file is whole, `working` while rows get their verdicts, then `done`.
    #[schema(schema_with = words::import_state)]
    pub state: ImportState,
    /// Rows of the file, as far as it has arrived.
    pub rows: i64,
    /// How many of them have their verdict.
    pub judged: i64,
    /// The verdicts, counted.
    pub verdicts: VerdictCounts,
    /// Tenants that were added for it, or in a dry run would be.
    pub tenants_added: i64,
    /// Where the claims that it made stand now.
    pub claims: ClaimCounts,
    /// What the limits of the certificate authority make of it; null until every row has its verdict.
    #[schema(required)]
    pub plan: Option<PlanView>,
    /// SHA-256 of the file; null until it is whole.
    #[schema(required)]
    pub digest: Option<String>,
    /// When it began to arrive.
    #[serde(with = "rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Moment,
    /// When it was whole.
    #[serde(with = "rfc3339::option", default)]
    #[schema(required, value_type = Option<String>, format = DateTime)]
    pub received_at: Option<Moment>,
    /// When the last row got its verdict, or it was cancelled.
    #[serde(with = "rfc3339::option", default)]
    #[schema(required, value_type = Option<String>, format = DateTime)]
    pub finished_at: Option<Moment>,
    /// Who paused, resumed or cancelled it last; null where nobody has.
    #[schema(required)]
    #[serde(default)]
    pub turned_by: Option<String>,
    /// When that was.
    #[serde(with = "rfc3339::option", default)]
    #[schema(required, value_type = Option<String>, format = DateTime)]
    pub turned_at: Option<Moment>,
    /// When the next of its names that wait for their records is looked at; null where none waits, and in lists.
    #[serde(with = "rfc3339::option", default)]
    #[schema(required, value_type = Option<String>, format = DateTime)]
    pub next_look_at: Option<Moment>,
    /// Rises with everything that happens to it.
    #[serde(skip)]
    pub version: i64,
}

/// Verdicts, counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct VerdictCounts {
    /// Without a verdict so far.
    pub pending: i64,
    /// Claimed.
    pub claimed: i64,
    /// Claimed by the tenant before.
    pub already_yours: i64,
    /// In a dry run: would be claimed.
    pub would_be_claimed: i64,
    /// The same as an earlier row.
    pub duplicate: i64,
    /// Not taken; the result file says why.
    pub refused: i64,
    /// The import was cancelled before their turn.
    pub cancelled: i64,
}

/// Claims by state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ClaimCounts {
    /// Waiting for their records.
    pub awaiting_dns: i64,
    /// Proven; their certificates are under way.
    pub queued: i64,
    /// With a certificate.
    pub live: i64,
    /// Out of time; claimed again they begin anew.
    pub expired: i64,
    /// Removed since.
    pub removed: i64,
}

impl ClaimCounts {
    /// How many have neither their certificate nor ended without one.
    pub fn on_their_way(&self) -> i64 {
        self.awaiting_dns + self.queued
    }
}

/// What the limits of the certificate authority make of an import, if every name is set up right and nothing else comes between.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlanView {
    /// When it was made.
    #[serde(with = "rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub made_at: Moment,
    /// Orders that are needed.
    pub orders: u64,
    /// Orders that wait already and go first.
    pub ahead: u64,
    /// Registered domains that the names are under.
    pub registered_domains: u64,
    /// When the first order can be made; null when none is needed.
    #[serde(with = "rfc3339::option", default)]
    #[schema(required, value_type = Option<String>, format = DateTime)]
    pub first_order_at: Option<Moment>,
    /// When the last order can be made.
    #[serde(with = "rfc3339::option", default)]
    #[schema(required, value_type = Option<String>, format = DateTime)]
    pub last_order_at: Option<Moment>,
    /// When it could be made if only the account's limit on orders counted.
    #[serde(with = "rfc3339::option", default)]
    #[schema(required, value_type = Option<String>, format = DateTime)]
    pub account_last_order_at: Option<Moment>,
    /// Registered domains whose names have to wait for each other.
    pub colliding: u64,
    /// The slowest of them, at most fifty.
    pub collisions: Vec<CollisionView>,
    /// The way there, at most fifty points.
    pub curve: Vec<PointView>,
}

/// A registered domain whose names have to wait for each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CollisionView {
    /// Which.
    pub registered_domain: String,
    /// Names of the import under it.
    pub names: u64,
    /// How many of them need not wait for its limit.
    pub at_once: u64,
    /// When the last of them is ordered.
    #[serde(with = "rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub last_order_at: Moment,
}

/// How far a plan is at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PointView {
    /// When.
    #[serde(with = "rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub at: Moment,
    /// Orders made by then.
    pub orders: u64,
}

/// A row with its verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = ImportRow)]
pub struct ImportRowView {
    /// Its line in the file, counted from 1.
    pub line: i64,
    /// The hostname as it was typed.
    pub hostname: String,
    /// The tenant as it was typed.
    #[schema(required)]
    pub tenant: Option<String>,
    /// The method as it was typed.
    #[schema(required)]
    #[serde(default)]
    pub method: Option<String>,
    /// What became of it.
    #[schema(schema_with = words::row_verdict)]
    pub verdict: Verdict,
    /// Why it was not taken: a stable code.
    #[schema(required)]
    pub code: Option<String>,
    /// The same as a sentence.
    #[schema(required)]
    pub detail: Option<String>,
    /// A hostname that would be taken.
    #[schema(required)]
    pub suggestion: Option<String>,
    /// The claim.
    #[schema(required, value_type = Option<String>)]
    pub domain_id: Option<DomainId>,
}

/// Looks that were asked for at all names of an import that wait for their records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = ImportChecked)]
pub struct CheckedView {
    /// How many names are looked at.
    pub names: u64,
    /// When the last of them has its turn.
    #[serde(with = "rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub last_look_at: Moment,
}

impl From<ImportRow> for ImportRowView {
    fn from(row: ImportRow) -> Self {
        let (code, detail, suggestion) = match row.refusal {
            Some(r) => (Some(r.code), Some(r.detail), r.suggestion),
            None => (None, None, None),
        };
        ImportRowView {
            line: row.line,
            hostname: row.typed,
            tenant: row.tenant,
            method: row.method,
            verdict: row.verdict,
            code,
            detail,
            suggestion,
            domain_id: row.domain_id,
        }
    }
}

impl From<Plan> for PlanView {
    fn from(plan: Plan) -> Self {
        let collision = |c: crate::model::bulk_plan::Collision| CollisionView {
            registered_domain: c.registered_domain,
            names: c.names,
            at_once: c.at_once,
            last_order_at: c.last_at,
        };
        PlanView {
            made_at: plan.made_at,
            orders: plan.orders,
            ahead: plan.ahead,
            registered_domains: plan.registered_domains,
            first_order_at: plan.first_at,
            last_order_at: plan.last_at,
            account_last_order_at: plan.account_last_at,
            colliding: plan.colliding,
            collisions: plan.collisions.into_iter().map(collision).collect(),
            curve: plan.curve.into_iter().map(|p| PointView { at: p.at, orders: p.orders }).collect(),
        }
    }
}

/// The document of an import, with where its claims stand.
pub async fn import(tx: &mut Tx, import: Import) -> StoreResult<ImportView> {
    let mut claims = ClaimCounts::default();
    for (_, claim, n) in bulk::claims(tx, std::iter::once(&import.id)).await? {
        claims.add(claim, n);
    }
    let next_look_at = match claims.awaiting_dns {
        0 => None,
        _ => bulk_checks::next_look(tx, &import.id).await?,
    };
    Ok(ImportView { next_look_at, ..ImportView::new(import, claims) })
}

/// The same of many; their claims are counted together.
pub async fn imports(tx: &mut Tx, imports: Vec<Import>) -> StoreResult<Vec<ImportView>> {
    let mut counted: HashMap<ImportId, ClaimCounts> = HashMap::new();
    for (id, claim, n) in bulk::claims(tx, imports.iter().map(|import| &import.id)).await? {
        counted.entry(id).or_default().add(claim, n);
    }
    let view = |import: Import| {
        let claims = counted.remove(&import.id).unwrap_or_default();
        ImportView::new(import, claims)
    };
    Ok(imports.into_iter().map(view).collect())
}

impl ClaimCounts {
    fn add(&mut self, claim: Claim, n: i64) {
        let count = match claim {
            Claim::AwaitingDns => &mut self.awaiting_dns,
            Claim::Queued => &mut self.queued,
            Claim::Live => &mut self.live,
            Claim::Expired => &mut self.expired,
            Claim::Releasing | Claim::Released | Claim::Withdrawn => &mut self.removed,
        };
        *count += n;
    }
}

impl ImportView {
    /// The document of an import whose claims were counted.
    pub fn new(import: Import, claims: ClaimCounts) -> Self {
        let c = import.counts;
        let left = import.rows - import.cursor;
        let given_up = import.state == ImportState::Cancelled;
        ImportView {
            id: import.id,
            name: import.name,
            format: import.format,
            dry_run: import.dry_run,
            create_tenants: import.create_tenants,
            tenant_id: import.tenant_id,
            state: import.state,
            rows: import.rows,
            judged: import.cursor,
            verdicts: VerdictCounts {
                pending: if given_up { 0 } else { left },
                claimed: c.claimed,
                already_yours: c.already,
                would_be_claimed: c.would_claim,
                duplicate: c.duplicate,
                refused: c.refused,
                cancelled: if given_up { left } else { 0 },
            },
            tenants_added: c.tenants_added,
            claims,
            plan: import.plan.map(PlanView::from),
            digest: import.digest,
            created_at: import.created_at,
            received_at: import.received_at,
            finished_at: import.finished_at,
            turned_by: import.turned_by,
            turned_at: import.turned_at,
            next_look_at: None,
            version: import.version,
        }
    }
}
