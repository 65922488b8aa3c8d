//! The page for whoever owns the DNS: one domain's records and live state, to read, without an account.

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::domain::{face, offer};
use super::face::Face;
use super::when::{absolute, relative};
use crate::app::links::{self, Dead};
use crate::app::show;
use crate::model::secret::Secret;
use crate::store::links::{FoundLink, LinkKind};
use crate::web::input::LinkText;
use crate::web::problem::{Problem, html};
use crate::web::state::WebState;
use crate::web::texts as t;

#[derive(Template)]
#[template(path = "hand_off.html")]
pub(super) struct HandOffPage {
    pub(super) face: Face,
    /// Who asks for the records.
    pub(super) tenant_name: String,
    pub(super) ends: String,
    pub(super) ends_full: String,
    /// Where the page is told of changes.
    pub(super) live: String,
    /// Where the records are as a file.
    pub(super) zone_file: String,
}

/// A link that lets nobody in, with what to do about it.
#[derive(Template)]
#[template(path = "dead_link.html")]
pub(super) struct DeadLinkPage {
    pub(super) title: &'static str,
    pub(super) told: &'static str,
    pub(super) todo: &'static str,
}

impl DeadLinkPage {
    /// Of a hand-off link.
    pub(super) fn hand_off(dead: Dead) -> DeadLinkPage {
        let (title, told) = match dead {
            Dead::Expired => (t::link_ended(), t::hand_off_ended()),
            Dead::Revoked => (t::link_taken_back(), t::hand_off_revoked()),
            Dead::Unknown | Dead::Used => (t::link_nowhere(), t::hand_off_unknown()),
        };
        DeadLinkPage { title, told, todo: t::hand_off_todo() }
    }

    /// The page with its status: gone, or never there.
    pub(super) fn answer(self, dead: Dead) -> Result<Response, Problem> {
        let status = if dead == Dead::Unknown { StatusCode::NOT_FOUND } else { StatusCode::GONE };
        Ok(kept_quiet((status, html(&self)?).into_response()))
    }
}

/// The link behind this text, with the domain that it shows.
pub(super) async fn find(state: &WebState, text: &Secret) -> Result<Result<FoundLink, Dead>, Problem> {
    Ok(links::look_at(&state.app.store, LinkKind::HandOff, text, state.app.env.now()).await?)
}

/// `GET /hand-off/{token}`
pub(in crate::web) async fn show_hand_off(
    State(state): State<WebState>,
    LinkText(text): LinkText,
) -> Result<Response, Problem> {
    let found = match find(&state, &text).await? {
        Ok(found) => found,
        Err(dead) => return DeadLinkPage::hand_off(dead).answer(dead),
    };
    let domain = found.row.domain_id.ok_or_else(Problem::no_domain)?;
    let position = show::position(&state.app.store).await?;
    let mut face = face(&state, &domain).await?;
    // Not back to this page: its address is what lets people in.
    offer(&state, &mut face, &format!("{}/connected", state.settings.public_url)).await?;
    let secret = text.expose_str().unwrap_or_default();
    let page = HandOffPage {
        face,
        tenant_name: crate::web::visible::visible(&found.tenant_name),
        ends: relative(found.row.expires_at, state.app.env.now()),
        ends_full: absolute(found.row.expires_at),
        live: format!("/hand-off/{secret}/live?after={position}"),
        zone_file: format!("/hand-off/{secret}/records.zone"),
    };
    Ok(kept_quiet(html(&page)?.into_response()))
}

/// What stands at a hand-off link is for nobody else: not for search engines, and no other site learns its address.
pub(super) fn kept_quiet(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert("x-robots-tag", HeaderValue::from_static("noindex, nofollow"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}
