//! The page of one domain, and "check now".

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::face::{Connected, Face, Turn};
use super::see;
use super::when::{absolute, relative};
use crate::app::tokens::Principal;
use crate::app::{check, explain, links, show};
use crate::model::claim::Claim;
use crate::model::id::DomainId;
use crate::store::links::LinkRow;
use crate::web::api::domains::own_domain;
use crate::web::auth::PageCaller;
use crate::web::connect::{Made, offered};
use crate::web::form::{self, Button};
use crate::web::input::{Asked, Form, Id};
use crate::web::problem::{Problem, html};
use crate::web::state::WebState;
use crate::web::texts as t;

/// The page.
#[derive(Template)]
#[template(path = "domain.html")]
pub(super) struct DomainPage {
    pub(super) face: Face,
    pub(super) csrf: String,
    /// What just came of something that the reader did.
    pub(super) notice: Option<&'static str>,
    /// Whether the tenant is named: operators see many.
    pub(super) operator: bool,
    /// How far the stream had come before the page was made.
    pub(super) position: i64,
    /// Hand-off links that work.
    pub(super) shared: Vec<Shared>,
    /// Where the records are as a file.
    pub(super) zone_file: String,
}

/// A hand-off link as its maker sees it.
pub(super) struct Shared {
    pub(super) id: String,
    pub(super) made: String,
    pub(super) ends: String,
    pub(super) ends_full: String,
}

#[derive(Deserialize)]
pub(in crate::web) struct PageQuery {
    /// Set by the redirect after "check now": the page says so and loads itself once more.
    asked: Option<String>,
    /// Set by the redirect after a removal was undone.
    returned: Option<String>,
    /// Set by the way back from a DNS provider.
    connected: Option<String>,
    /// Added by a DNS provider that did not set the records. Whatever it says: what is shown is ours.
    error: Option<String>,
}

impl PageQuery {
    fn notice(&self) -> Option<&'static str> {
        if self.returned.is_some() {
            return Some(t::undone());
        }
        match (&self.asked, &self.connected, &self.error) {
            (Some(_), ..) => Some(t::looking_now()),
            (None, Some(_), Some(_)) => Some(t::not_connected()),
            (None, Some(_), None) => Some(t::connected()),
            (None, None, _) => None,
        }
    }
}

/// The face of a domain that is there.
pub(super) async fn face(state: &WebState, id: &DomainId) -> Result<Face, Problem> {
    let now = state.app.env.now();
    let store = &state.app.store;
    let view = show::domain(store, &state.settings.apex, id, now).await?.ok_or_else(Problem::no_domain)?;
    let names = if view.certificate.is_some() { show::certificate_names(store, id).await? } else { vec![] };
    let mut face = Face::new(&view, names, now).map_err(|e| Problem::page_failed(&e))?;
    if view.claim == Claim::Queued {
        let place = explain::place(&state.app, id, false, now).await?;
        face.turn = place.map(|place| Turn { position: place.position, expected_at: place.expected_at });
    }
    Ok(face)
}

/// Offers to have the records entered by the DNS provider itself, where it does that; the browser comes back to `back`.
pub(super) async fn offer(state: &WebState, face: &mut Face, back: &str) -> Result<(), Problem> {
    let made = offered(state, &face.view, back).await?;
    face.connect = made.map(|Made { offer, link, .. }| Connected {
        provider: crate::web::visible::visible(&offer.provider),
        host: offer.sync.host,
        link,
    });
    Ok(())
}

fn shared(state: &WebState, links: Vec<LinkRow>) -> Vec<Shared> {
    let now = state.app.env.now();
    let one = |link: LinkRow| Shared {
        id: link.id.to_string(),
        made: relative(link.created_at, now),
        ends: relative(link.expires_at, now),
        ends_full: absolute(link.expires_at),
    };
    links.into_iter().map(one).collect()
}

/// `GET /domains/{id}`
pub(in crate::web) async fn show_domain(
    State(state): State<WebState>,
    reader: PageCaller,
    Id(id): Id,
    Asked(query): Asked<PageQuery>,
) -> Result<Response, Problem> {
    let id = own_domain(&state, &reader.caller, &id).await?;
    // Before the document: what moves in between is told once too often rather than never.
    let position = show::position(&state.app.store).await?;
    let mut face = face(&state, &id).await?;
    offer(&state, &mut face, &format!("{}?connected=1", state.domain_page(&id))).await?;
    let links = links::hand_offs(&state.app.store, &id, state.app.env.now()).await?;
    let asked = query.asked.is_some();
    let operator = reader.caller.principal == Principal::Operator;
    let page = DomainPage {
        face,
        csrf: reader.csrf,
        notice: query.notice(),
        operator,
        position,
        shared: shared(&state, links),
        zone_file: format!("/domains/{id}/records.zone"),
    };
    let mut response = html(&page)?.into_response();
    if asked && let Ok(refresh) = HeaderValue::from_str(&format!("3;url={}", state.domain_page(&id))) {
        response.headers_mut().insert(header::REFRESH, refresh);
    }
    Ok(response)
}

/// `POST /domains/{id}/check`
pub(in crate::web) async fn post_check(
    State(state): State<WebState>,
    reader: PageCaller,
    Id(id): Id,
    headers: HeaderMap,
    Form(body): Form<Button>,
) -> Result<Response, Problem> {
    let id = own_domain(&state, &reader.caller, &id).await?;
    form::check(&state, &headers, &reader, &body.csrf)?;
    check::check_now(&state.app, &id, &reader.actor).await?;
    Ok(see(&state, &format!("/domains/{id}?asked=1")))
}
