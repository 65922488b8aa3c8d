//! The portal link: a page with one button that changes nothing, and the button, which signs in once.

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};

use super::hand_off::DeadLinkPage;
use super::see;
use crate::app::links::{self, Dead};
use crate::store::links::LinkKind;
use crate::web::input::LinkText;
use crate::web::problem::{Problem, html};
use crate::web::state::WebState;
use crate::web::texts as t;
use crate::web::{cookie, form};

#[derive(Template)]
#[template(path = "enter.html")]
pub(super) struct EnterPage {
    pub(super) tenant_name: String,
    pub(super) action: String,
}

impl DeadLinkPage {
    /// Of a portal link.
    pub(super) fn portal(dead: Dead) -> DeadLinkPage {
        let (title, told) = match dead {
            Dead::Used => (t::link_used(), t::portal_used()),
            Dead::Expired => (t::link_ended(), t::portal_ended()),
            Dead::Revoked => (t::link_taken_back(), t::portal_revoked()),
            Dead::Unknown => (t::link_nowhere(), t::portal_unknown()),
        };
        DeadLinkPage { title, told, todo: t::portal_todo() }
    }
}

/// `GET /enter/{token}`: mail scanners and previews come here, too, and use nothing up.
pub(in crate::web) async fn show_link(State(state): State<WebState>, LinkText(text): LinkText) -> Result<Response, Problem> {
    match links::look_at(&state.app.store, LinkKind::Portal, &text, state.app.env.now()).await? {
        Err(dead) => DeadLinkPage::portal(dead).answer(dead),
        Ok(found) => {
            let action = format!("/enter/{}", text.expose_str().unwrap_or_default());
            let tenant_name = crate::web::visible::visible(&found.tenant_name);
            let mut response = html(&EnterPage { tenant_name, action })?.into_response();
            response.headers_mut().insert("x-robots-tag", HeaderValue::from_static("noindex, nofollow"));
            Ok(response)
        }
    }
}

/// `POST /enter/{token}`: of many at once, one signs in. A link that died meanwhile leaves the session that is there alone.
pub(in crate::web) async fn use_link(
    State(state): State<WebState>,
    headers: HeaderMap,
    LinkText(text): LinkText,
) -> Result<Response, Problem> {
    form::from_our_page(&state, &headers)?;
    let before = cookie::read(&state, &headers);
    let settings = state.settings.sessions();
    match links::enter(&state.app.store, &state.app.env, &text, &settings, before.as_ref()).await? {
        Err(dead) => DeadLinkPage::portal(dead).answer(dead),
        Ok((began, link)) => {
            tracing::info!(session.id = %began.id, link.id = %link.id, tenant.id = %link.tenant_id, "signed in by a link");
            let path = link.domain_id.map_or_else(|| "/domains".to_owned(), |domain| format!("/domains/{domain}"));
            let mut response = see(&state, &path);
            if let Some(cookie) = cookie::set(&state, &began) {
                response.headers_mut().insert(header::SET_COOKIE, cookie);
            }
            Ok(response)
        }
    }
}
