//! Adding domains, several at once: every line gets its verdict, and what could not be taken stays in the field.

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use serde::Deserialize;

use super::pasted::{self, Pasted};
use super::see;
use crate::app::claim::{self, ClaimError};
use crate::app::pair::{self, PairError};
use crate::app::tenants;
use crate::app::tokens::Principal;
use crate::model::hostname::Hostname;
use crate::model::id::{DomainId, TenantId};
use crate::web::auth::PageCaller;
use crate::web::form;
use crate::web::input::{Asked, Form};
use crate::web::problem::{Problem, html};
use crate::web::state::WebState;
use crate::web::texts as t;
use crate::web::visible::visible;

#[derive(Default, Template)]
#[template(path = "add.html")]
pub(super) struct AddPage {
    pub(super) csrf: String,
    /// Whether a tenant is to be named.
    pub(super) operator: bool,
    pub(super) tenant: String,
    /// What stays in the field.
    pub(super) names: String,
    /// What is wrong with the form as a whole.
    pub(super) trouble: Option<String>,
    pub(super) added: Vec<Added>,
    pub(super) refused: Vec<Refused>,
    /// Names that were not looked at, for they were too many.
    pub(super) left: usize,
    /// The other halves of pairs.
    pub(super) partners: Vec<String>,
    /// Whether the box for the other half is ticked.
    pub(super) with_partner: bool,
    /// Whether the box for the redirect is.
    pub(super) redirect: bool,
}

/// What is wanted beside the names themselves.
#[derive(Clone, Copy)]
struct Wanted {
    with_partner: bool,
    redirect: bool,
}

/// A name that was taken.
pub(super) struct Added {
    pub(super) id: DomainId,
    pub(super) name: String,
    /// As it was typed, where that was otherwise.
    pub(super) typed: Option<String>,
    pub(super) new: bool,
}

/// A name that was not.
pub(super) struct Refused {
    pub(super) typed: String,
    pub(super) why: String,
}

#[derive(Deserialize)]
pub(in crate::web) struct AddQuery {
    #[serde(default)]
    names: String,
    #[serde(default)]
    tenant: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct AddForm {
    csrf: String,
    #[serde(default)]
    names: String,
    #[serde(default)]
    tenant: String,
    /// Whether the other half of each name is wanted, too.
    #[serde(default)]
    with_partner: Option<String>,
    /// Whether visitors of the other half are sent on to the name as typed.
    #[serde(default)]
    redirect: Option<String>,
}

/// `GET /domains/add`: a link may fill in names.
pub(in crate::web) async fn show_add(reader: PageCaller, Asked(asked): Asked<AddQuery>) -> Result<Html<String>, Problem> {
    let operator = reader.caller.principal == Principal::Operator;
    let (names, tenant) = (visible(&asked.names), visible(&asked.tenant));
    html(&AddPage { csrf: reader.csrf, operator, names, tenant, ..AddPage::default() })
}

/// The tenant that the names are for.
async fn tenant(state: &WebState, principal: &Principal, named: &str) -> Result<Option<TenantId>, Problem> {
    match principal {
        Principal::Tenant(own) => Ok(Some(own.clone())),
        Principal::Operator => Ok(tenants::find(&state.app.store, named.trim()).await?.map(|tenant| tenant.id)),
    }
}

/// `POST /domains/add`: on to the domain where one was named and taken, else the verdicts.
pub(in crate::web) async fn post_add(
    State(state): State<WebState>,
    reader: PageCaller,
    headers: HeaderMap,
    Form(body): Form<AddForm>,
) -> Result<Response, Problem> {
    form::check(&state, &headers, &reader, &body.csrf)?;
    let operator = reader.caller.principal == Principal::Operator;
    let wanted = Wanted { with_partner: body.with_partner.is_some(), redirect: body.redirect.is_some() };
    let (named, left) = pasted::read(&body.names, &state.settings.rules);
    let mut page = AddPage { csrf: reader.csrf, operator, tenant: visible(&body.tenant), ..AddPage::default() };
    let whose = tenant(&state, &reader.caller.principal, &body.tenant).await?;
    let (Some(whose), false) = (whose, named.is_empty()) else {
        // Back as it came, but for what a page cannot hold.
        page.names = body.names.replace('\0', "\u{fffd}");
        page.trouble = Some(match named.is_empty() {
            true => t::type_a_name().into(),
            false => t::no_such_tenant().into(),
        });
        return Ok((StatusCode::UNPROCESSABLE_ENTITY, html(&page)?).into_response());
    };
    let alone = named.len() == 1 && left.is_empty();
    let rules = &state.settings.rules;
    (page.with_partner, page.redirect) = (wanted.with_partner, wanted.redirect);
    let mut kept: Vec<String> = Vec::new();
    for Pasted { typed, read } in named {
        let name = match read {
            Ok(name) => name,
            Err(refusal) => {
                kept.push(visible(&typed));
                page.refused.push(Refused { typed: visible(&typed), why: visible(&refusal.to_string()) });
                continue;
            }
        };
        let both = wanted.with_partner && name.partner().is_some_and(|p| Hostname::parse(p.as_str(), rules).is_ok());
        let claimed = if both {
            let to = wanted.redirect.then_some(&name);
            pair::claim_with_partner(&state.app, &whose, &name, to, &reader.actor).await
        } else {
            claim::claim(&state.app, &whose, &name, &reader.actor).await.map_err(PairError::from)
        };
        match claimed {
            Ok(claimed) => {
                page.partners.extend(name.partner().filter(|_| !both).map(|partner| partner.to_string()));
                let display = name.display();
                let typed = (typed != display && typed != name.as_str()).then(|| visible(&typed));
                page.added.push(Added { id: claimed.id, name: display, typed, new: claimed.new });
            }
            Err(PairError::Claim(e @ ClaimError::NoTenant(_))) => return Err(e.into()),
            Err(e @ PairError::Loop(_)) => {
                kept.push(visible(&typed));
                page.refused.push(Refused { typed: visible(&typed), why: visible(&e.to_string()) });
            }
            Err(e) => {
                tracing::error!(error = %crate::telemetry::Chain(&e), "a name could not be added");
                kept.push(visible(&typed));
                page.refused.push(Refused { typed: visible(&typed), why: t::failed_here().into() });
            }
        }
    }
    if alone && let Some(one) = page.added.first() {
        return Ok(see(&state, &format!("/domains/{}", one.id)));
    }
    page.left = left.len();
    kept.extend(left.iter().map(|word| visible(word)));
    page.names = kept.join("\n");
    let added: Vec<&str> = page.added.iter().map(|one| one.name.as_str()).collect();
    page.partners.retain(|partner| !added.contains(&partner.as_str()));
    let status = if page.refused.is_empty() { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
    Ok((status, html(&page)?).into_response())
}
