//! What becomes of a batch of rows: first who is meant by each, in the order of the file; then the claims, in the order of
//! their names, so that two imports of the same names never wait for each other in a circle.

use std::collections::{BTreeMap, HashMap};

use crate::app::claim::{self, ClaimError};
use crate::app::tenants::{self, AddTenantError, NewTenant};
use crate::app::{App, AppError};
use crate::model::bulk::Verdict;
use crate::model::claim::Claim;
use crate::model::hostname::Hostname;
use crate::model::id::{DomainId, TenantId};
use crate::model::order::Lane;
use crate::model::slug::Slug;
use crate::model::tenant::TenantStatus;
use crate::store::bulk::{Counts, Import};
use crate::store::bulk_rows::{self, ImportRow, Judged, Refusal, Taken, ToJudge};
use crate::store::{StoreResult, Tx, claims};

/// Who a row means.
#[derive(Clone, Debug)]
enum Whose {
    /// A tenant that may claim names.
    Tenant(TenantId),
    /// In a dry run: one that would be added.
    Added,
    /// Nobody that the sender may know of, or one that claims nothing.
    Refused(Refusal),
}

/// Judges rows and writes their verdicts in this transaction.
pub(super) async fn judge(app: &App, tx: &mut Tx, import: &Import, rows: &[ToJudge]) -> Result<Counts, AppError> {
    let mut counts = Counts::default();
    let mut tenants: HashMap<String, Whose> = HashMap::new();
    for name in in_order(rows.iter().filter(|r| r.row.hostname.is_some()).filter_map(|r| r.row.tenant.as_deref())) {
        let (whose, added) = resolve(app, tx, import, name).await?;
        counts.tenants_added += i64::from(added);
        tenants.insert(name.to_owned(), whose);
    }
    let own = match &import.default_tenant {
        Some(id) => Some(active(tx, id).await?),
        None => None,
    };
    let mut verdicts: BTreeMap<i64, Judged> = BTreeMap::new();
    // Names to claim, and by which row.
    let mut wanted: Vec<(TenantId, Hostname, i64)> = Vec::new();
    // Names that rows of this batch take, by which row.
    let mut here: HashMap<&Hostname, Taken> = HashMap::new();
    for ToJudge { row, taken } in rows {
        let Some(hostname) = &row.hostname else {
            verdicts.insert(row.n, verdict(row, Verdict::Refused, row.refusal.clone(), None));
            continue;
        };
        let whose = row.tenant.as_ref().map_or(own.as_ref(), |name| tenants.get(name));
        let tenant = match whose {
            Some(Whose::Tenant(id)) => Some(id.clone()),
            Some(Whose::Added) => None,
            Some(Whose::Refused(refusal)) => {
                verdicts.insert(row.n, verdict(row, Verdict::Refused, Some(refusal.clone()), None));
                continue;
            }
            None => {
                verdicts.insert(row.n, verdict(row, Verdict::Refused, Some(unknown(import)), None));
                continue;
            }
        };
        if let Some(earlier) = taken.as_ref().or_else(|| here.get(hostname)) {
            let found = if is_same(earlier, tenant.as_ref(), row.tenant.as_deref()) {
                let detail = format!("The same as line {}.", earlier.line);
                (Verdict::Duplicate, said("duplicate", detail))
            } else {
                let detail = format!(
                    "Line {} gives this name to another tenant, and only one can hold it. Keep the row that is right.",
                    earlier.line
                );
                (Verdict::Refused, said("row_conflicts", detail))
            };
            verdicts.insert(row.n, verdict(row, found.0, Some(found.1), tenant));
            continue;
        }
        if let Some(tenant) = &tenant {
            wanted.push((tenant.clone(), hostname.clone(), row.n));
        }
        here.insert(hostname, Taken { line: row.line, tenant_id: tenant.clone(), tenant: row.tenant.clone() });
        verdicts.insert(row.n, verdict(row, Verdict::WouldClaim, None, tenant));
    }
    claim_all(app, tx, import, wanted, &mut verdicts).await?;
    let judged: Vec<Judged> = verdicts.into_values().collect();
    for one in &judged {
        let count = match one.verdict {
            Verdict::Claimed => &mut counts.claimed,
            Verdict::Already => &mut counts.already,
            Verdict::WouldClaim => &mut counts.would_claim,
            Verdict::Duplicate => &mut counts.duplicate,
            Verdict::Refused | Verdict::Pending | Verdict::Cancelled => &mut counts.refused,
        };
        *count += 1;
    }
    bulk_rows::judge(tx, &import.id, &judged).await?;
    Ok(counts)
}

/// Marks a row that fails again and again on our side, so that the others go on.
pub(super) async fn refuse_for_us(tx: &mut Tx, import: &Import, row: &ImportRow) -> StoreResult<Counts> {
    let detail = "This row failed on our side and was written to the log. Send it again.".to_owned();
    let judged = verdict(row, Verdict::Refused, Some(said("row_failed", detail)), None);
    bulk_rows::judge(tx, &import.id, &[judged]).await?;
    Ok(Counts { refused: 1, ..Counts::default() })
}

fn in_order<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn verdict(row: &ImportRow, verdict: Verdict, refusal: Option<Refusal>, tenant_id: Option<TenantId>) -> Judged {
    Judged { n: row.n, verdict, refusal, tenant_id, domain_id: None }
}

fn said(code: &str, detail: String) -> Refusal {
    Refusal { code: code.to_owned(), detail, suggestion: None }
}

/// Whether a row means the tenant that an earlier one gave the name to.
fn is_same(earlier: &Taken, tenant_id: Option<&TenantId>, tenant: Option<&str>) -> bool {
    match (&earlier.tenant_id, tenant_id) {
        (Some(a), Some(b)) => a == b,
        // In a dry run, tenants that are not there yet are told apart by how they are written.
        (None, None) => earlier.tenant.as_deref().map(str::to_ascii_lowercase) == tenant.map(str::to_ascii_lowercase),
        _ => false,
    }
}

/// What is said of a tenant that is not there, and of one that the sender may not know of.
fn unknown(import: &Import) -> Refusal {
    let mut detail = "There is no tenant with this id or slug.".to_owned();
    if import.tenant_id.is_none() {
        detail.push_str(
            " Tenants are added where the import is told to: --create-tenants, or create_tenants=true in the API.",
        );
    }
    said("tenant_unknown", detail)
}

async fn active(tx: &mut Tx, id: &TenantId) -> StoreResult<Whose> {
    let tenant = crate::store::tenants::lookup(tx, id).await?;
    Ok(match tenant {
        Some(tenant) if tenant.status == TenantStatus::Active => Whose::Tenant(tenant.id),
        _ => Whose::Refused(said("tenant_not_active", "The tenant is suspended or gone and claims no names.".into())),
    })
}

/// Who is meant by a tenant's name in a row, and whether it was added for it.
async fn resolve(app: &App, tx: &mut Tx, import: &Import, name: &str) -> Result<(Whose, bool), AppError> {
    let slug = Slug::parse(name);
    let found = match (name.parse::<TenantId>(), &slug) {
        (Ok(id), _) => crate::store::tenants::lookup(tx, &id).await?,
        (Err(_), Ok(slug)) => crate::store::tenants::lookup_by_slug(tx, slug).await?,
        (Err(_), Err(_)) => None,
    };
    if let Some(own) = &import.tenant_id {
        // One answer for the unknown and for the others', and before anything about them is said.
        return match found.filter(|tenant| tenant.id == *own) {
            Some(tenant) => Ok((active(tx, &tenant.id).await?, false)),
            None => Ok((Whose::Refused(unknown(import)), false)),
        };
    }
    if let Some(tenant) = found {
        return Ok((active(tx, &tenant.id).await?, false));
    }
    if !import.create_tenants || name.parse::<TenantId>().is_ok() {
        return Ok((Whose::Refused(unknown(import)), false));
    }
    let slug = match Slug::parse_new(name) {
        Ok(slug) => slug,
        Err(e) => {
            return Ok((Whose::Refused(said("slug_invalid", format!("No tenant can be added for this row: {e}."))), false));
        }
    };
    let is_taken = bulk_rows::slug_is_taken(tx, &slug).await?;
    // A dry run adds nobody, and says of the next look-alike what the import would.
    if is_taken || import.dry_run && !bulk_rows::would_add(tx, &import.id, &slug).await? {
        let taken = AddTenantError::Taken(slug.to_string());
        return Ok((Whose::Refused(said("slug_taken", format!("No tenant can be added for this row: {taken}."))), false));
    }
    if import.dry_run {
        // Counted when every row has its verdict: the next batch may name the same.
        return Ok((Whose::Added, false));
    }
    let new = NewTenant { slug: slug.as_str(), name: None };
    let suffix = &app.settings.canonical_suffix;
    let host = |slug: &Slug| (!suffix.is_empty()).then(|| Hostname::trusted(&format!("{slug}.{suffix}")));
    match tenants::add_in(tx, &app.env, new, host, &import.actor).await {
        Ok(tenant) => Ok((Whose::Tenant(tenant.id), true)),
        Err(AddTenantError::Store(e)) => Err(e.into()),
        // Taken by somebody else this very moment: the batch is judged anew, and finds it.
        Err(AddTenantError::Taken(_)) => Err(crate::store::StoreError::Busy.into()),
        Err(e @ (AddTenantError::Slug(_) | AddTenantError::Name(_))) => {
            Ok((Whose::Refused(said("slug_invalid", format!("No tenant can be added for this row: {e}."))), false))
        }
    }
}

/// Claims what is wanted, in the lane of imports.
async fn claim_all(
    app: &App,
    tx: &mut Tx,
    import: &Import,
    mut wanted: Vec<(TenantId, Hostname, i64)>,
    verdicts: &mut BTreeMap<i64, Judged>,
) -> Result<(), AppError> {
    wanted.sort();
    let mut made: Vec<DomainId> = Vec::new();
    for (tenant, hostname, n) in wanted {
        let Some(judged) = verdicts.get_mut(&n) else { continue };
        match claims::open_claim(tx, &tenant, &hostname).await? {
            Some((id, state)) if state != Claim::Expired => {
                judged.verdict = Verdict::Already;
                judged.domain_id = Some(id);
            }
            _ if import.dry_run => {}
            before => match claim::claim_in_lane(app, tx, &tenant, &hostname, &import.actor, Lane::Bulk).await {
                Ok(claimed) => {
                    judged.domain_id = Some(claimed.id.clone());
                    // Another import may have claimed it this very moment.
                    if claimed.new || before.is_some() {
                        judged.verdict = Verdict::Claimed;
                        made.push(claimed.id);
                    } else {
                        judged.verdict = Verdict::Already;
                    }
                }
                Err(ClaimError::NoTenant(_)) => {
                    judged.verdict = Verdict::Refused;
                    let detail = "The tenant is suspended or gone and claims no names.".to_owned();
                    judged.refusal = Some(said("tenant_not_active", detail));
                }
                Err(ClaimError::App(e)) => return Err(e),
            },
        }
    }
    bulk_rows::belong(tx, &made, &import.id).await?;
    Ok(())
}
