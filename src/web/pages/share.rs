//! Hand-off links from the page of their domain: made, shown this once, taken back.

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::see;
use super::when::{absolute, relative};
use crate::app::links::{self, NewLink};
use crate::app::show;
use crate::model::id::{DomainId, LinkId};
use crate::store::links::LinkKind;
use crate::web::api::domains::own_domain;
use crate::web::auth::PageCaller;
use crate::web::form::{self, Button};
use crate::web::input::{Form, Id};
use crate::web::problem::{Problem, html};
use crate::web::state::WebState;
use crate::web::texts as t;

#[derive(Template)]
#[template(path = "shared.html")]
pub(super) struct SharedPage {
    pub(super) id: DomainId,
    pub(super) hostname: String,
    pub(super) url: String,
    pub(super) ends: String,
    pub(super) ends_full: String,
}

/// `POST /domains/{id}/hand-off`: the answer is the only page that ever shows the link.
pub(in crate::web) async fn post_hand_off(
    State(state): State<WebState>,
    reader: PageCaller,
    Id(id): Id,
    headers: HeaderMap,
    Form(body): Form<Button>,
) -> Result<Response, Problem> {
    let id = own_domain(&state, &reader.caller, &id).await?;
    form::check(&state, &headers, &reader, &body.csrf)?;
    let now = state.app.env.now();
    let view = show::domain(&state.app.store, &state.settings.apex, &id, now).await?.ok_or_else(Problem::no_domain)?;
    if !view.claim.is_open() {
        return Err(Problem::refused(
            "claim_closed",
            "This domain was removed; there are no records to publish for it.".into(),
        ));
    }
    let new = NewLink {
        kind: LinkKind::HandOff,
        tenant: view.tenant.id,
        domain: Some(id.clone()),
        return_url: None,
        lifetime: state.settings.portal.hand_off_lifetime,
    };
    let minted = links::mint(&state.app.store, &state.app.env, new, &reader.caller, &reader.actor).await?;
    let minted = minted.ok_or_else(Problem::not_signed_in)?;
    let page = SharedPage {
        id,
        hostname: view.hostname_display,
        url: state.hand_off_link(minted.text.expose_str().unwrap_or_default()),
        ends: relative(minted.row.expires_at, now),
        ends_full: absolute(minted.row.expires_at),
    };
    Ok((StatusCode::CREATED, html(&page)?).into_response())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct RevokeForm {
    csrf: String,
    link: String,
}

/// `POST /domains/{id}/hand-off/revoke`
pub(in crate::web) async fn post_revoke(
    State(state): State<WebState>,
    reader: PageCaller,
    Id(id): Id,
    headers: HeaderMap,
    Form(body): Form<RevokeForm>,
) -> Result<Response, Problem> {
    let id = own_domain(&state, &reader.caller, &id).await?;
    form::check(&state, &headers, &reader, &body.csrf)?;
    let missing = || Problem::new(StatusCode::NOT_FOUND, "link_not_found", "No such link", "This domain has no such link.");
    let link: LinkId = body.link.parse().map_err(|_| missing())?;
    let found = links::find(&state.app.store, LinkKind::HandOff, &link, &reader.caller.principal).await?;
    found.filter(|found| found.domain_id.as_ref() == Some(&id)).ok_or_else(missing)?;
    links::revoke(&state.app.store, &link, state.app.env.now()).await?;
    Ok(see(&state, &format!("/domains/{id}#share")))
}
