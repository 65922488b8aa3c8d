//! `GET /operator/tenants` and one of them.

use askama::Template;
use axum::extract::State;
use axum::response::Html;
use serde::Deserialize;

use super::domains::after_id;
use super::line::Line;
use super::{Operator, PAGE, When, actor_tone, claim_tone, claim_word, grouped, share};
use crate::app::fleet::{self, TenantCounts};
use crate::model::claim::Claim;
use crate::model::evidence::Actor;
use crate::model::id::{DomainId, TenantId};
use crate::model::moment::Moment;
use crate::web::input::{Asked, Id};
use crate::web::problem::{Problem, html};
use crate::web::query;
use crate::web::state::WebState;
use crate::web::texts::operator as o;
use crate::web::visible::visible;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct PageQuery {
    cursor: Option<String>,
}

struct TenantLine {
    id: String,
    slug: String,
    name: String,
    status: &'static str,
    tier: String,
    open: String,
    serving: String,
    ours: i64,
    theirs: i64,
    added: When,
}

impl TenantLine {
    fn of(t: &TenantCounts, now: Moment) -> TenantLine {
        TenantLine {
            id: t.tenant.id.to_string(),
            slug: t.tenant.slug.to_string(),
            name: visible(&t.tenant.name),
            status: t.tenant.status.as_str(),
            tier: t.tenant.tier.clone(),
            open: grouped(t.open()),
            serving: grouped(t.serving()),
            ours: t.waiting_for(Actor::Platform),
            theirs: t.waiting_for(Actor::Tenant),
            added: When::at(t.tenant.created_at, now),
        }
    }
}

#[derive(Template)]
#[template(path = "operator/tenants.html")]
struct ListPage {
    here: &'static str,
    tenants: Vec<TenantLine>,
    next: Option<String>,
}

/// `GET /operator/tenants`: oldest first.
pub(in crate::web) async fn list(
    State(state): State<WebState>,
    _: Operator,
    Asked(asked): Asked<PageQuery>,
) -> Result<Html<String>, Problem> {
    let now = state.app.env.now();
    let after: Option<TenantId> = after_id(asked.cursor.as_deref())?;
    let limit = i64::try_from(PAGE).unwrap_or(i64::MAX);
    let tenants = fleet::tenant_list(&state.app, after.as_ref().map_or("", TenantId::as_str), limit).await?;
    let last = tenants.last().filter(|_| tenants.len() == PAGE);
    let next = last.map(|t| format!("/operator/tenants?{}", query(&[("cursor", t.tenant.id.as_str())])));
    html(&ListPage { here: "tenants", tenants: tenants.iter().map(|t| TenantLine::of(t, now)).collect(), next })
}

struct StateLine {
    name: &'static str,
    tone: &'static str,
    n: String,
    width: i64,
}

#[derive(Template)]
#[template(path = "operator/tenant.html")]
struct TenantPage {
    here: &'static str,
    tenant: TenantLine,
    placement: String,
    version: i64,
    states: Vec<StateLine>,
    reasons: Vec<(&'static str, &'static str, &'static str, String)>,
    rows: Vec<Line>,
    next: Option<String>,
}

/// So many reasons of one tenant are shown.
const REASONS: usize = 20;

/// `GET /operator/tenants/{id}`
pub(in crate::web) async fn show(
    State(state): State<WebState>,
    _: Operator,
    Id(id): Id,
    Asked(asked): Asked<PageQuery>,
) -> Result<Html<String>, Problem> {
    let now = state.app.env.now();
    let id: TenantId = id.parse().map_err(|_| Problem::no_tenant())?;
    let after: Option<DomainId> = after_id(asked.cursor.as_deref())?;
    let limit = i64::try_from(PAGE).unwrap_or(i64::MAX);
    let after = after.as_ref().map_or("", DomainId::as_str);
    let (counted, rows) = fleet::tenant(&state.app, &id, after, limit).await?.ok_or_else(Problem::no_tenant)?;
    let all: i64 = counted.counts.iter().map(|c| c.domains).sum();
    let of = |claim: Claim| counted.counts.iter().filter(|c| c.claim == claim).map(|c| c.domains).sum::<i64>();
    let states = Claim::ALL.iter().filter(|claim| of(**claim) > 0).map(|claim| StateLine {
        name: claim_word(*claim),
        tone: claim_tone(*claim),
        n: grouped(of(*claim)),
        width: share(of(*claim), all),
    });
    let mut stuck: Vec<_> =
        counted.counts.iter().filter_map(|c| c.standing.filter(|s| s.is_stuck()).map(|s| (s, c.domains))).collect();
    stuck.sort_by_key(|(standing, n)| (std::cmp::Reverse(*n), *standing));
    let reasons = stuck.into_iter().take(REASONS);
    let last = rows.last().filter(|_| rows.len() == PAGE);
    let next = last.map(|row| format!("/operator/tenants/{id}?{}", query(&[("cursor", row.id.as_str())])));
    let placement = &counted.tenant.placement;
    let page = TenantPage {
        here: "tenants",
        placement: format!("{} / {} / {}", placement.region, placement.stamp, placement.shard),
        version: counted.tenant.version,
        tenant: TenantLine::of(&counted, now),
        states: states.collect(),
        reasons: reasons.map(|(s, n)| (s.code(), s.sentence(), actor_tone(s.acts()), grouped(n))).collect(),
        rows: Line::all(&rows, now),
        next,
    };
    html(&page)
}
