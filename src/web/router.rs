//! All routes, listed once: the router is made from the list, and tests walk it.

use std::sync::Arc;

use axum::Router;
use axum::http::{Method, StatusCode};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::IntoResponse;
use axum::routing::{MethodRouter, delete, get, patch, post};

use super::freshness::tag_answers;
use super::pace::{self, Pace};
use super::problem::{Problem, write_problems};
use super::state::WebState;
use super::{access, api, health, pages};

/// A route, as tests and documentation see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The method.
    pub method: &'static str,
    /// The path, with `{id}` in place of an id.
    pub path: &'static str,
    /// Whether a token is needed.
    pub guarded: bool,
}

macro_rules! routes {
    ($($guard:ident $method:ident $path:literal => $handler:path;)*) => {
        /// Every route there is.
        pub const ROUTES: &[Route] = &[$(Route { method: stringify!($method), path: $path, guarded: guarded!($guard) },)*];

        fn each() -> Vec<(&'static str, MethodRouter<WebState>)> {
            vec![$(($path, $method($handler)),)*]
        }
    };
}

macro_rules! guarded {
    (open) => {
        false
    };
    (token) => {
        true
    };
}

routes! {
    open get "/" => pages::start;
    open get "/healthz" => health::healthz;
    open get "/assets/style.css" => pages::style;
    open get "/api/openapi.json" => api::description::openapi;
    open get "/api/docs" => api::docs::show_docs;
    open get "/api/docs/documents" => api::docs::show_documents;
    open get "/api/docs/problems" => api::docs::show_problems;
    open get "/assets/api-docs.css" => api::docs::style;
    token post "/api/v1/tenants" => api::tenants::create_tenant;
    token get "/api/v1/tenants" => api::tenants::list_tenants;
    token get "/api/v1/tenants/{id}" => api::tenants::get_tenant;
    token patch "/api/v1/tenants/{id}" => api::tenants::change_tenant;
    token post "/api/v1/tenants/{id}/contacts" => api::contacts::add_contact;
    token get "/api/v1/tenants/{id}/contacts" => api::contacts::list_contacts;
    token delete "/api/v1/tenants/{id}/contacts/{contact}" => api::contacts::remove_contact;
    token post "/api/v1/domains" => api::domains::claim_domain;
    token get "/api/v1/domains" => api::domains::list_domains;
    token get "/api/v1/domains/{id}" => api::domains::get_domain;
    token post "/api/v1/domains/{id}/check" => api::domains::check_domain;
    token delete "/api/v1/domains/{id}" => api::domains::remove_domain;
    token get "/api/v1/domains/{id}/attempts" => api::history::list_attempts;
    token get "/api/v1/domains/{id}/evidence" => api::history::list_evidence;
    token get "/api/v1/events" => api::events::list_events;
    token get "/api/v1/certificates" => api::certificates::list_certificates;
    token get "/api/v1/certificates/{id}" => api::certificates::get_certificate;
    token get "/api/v1/orders" => api::orders::list_orders;
    token get "/api/v1/edges" => api::edges::list_edges;
    token get "/api/v1/edges/{id}" => api::edges::get_edge;
    token post "/api/v1/edges/{id}/drain" => api::edges::drain_edge;
    token post "/api/v1/edges/{id}/undrain" => api::edges::undrain_edge;
    token post "/api/v1/tokens" => api::tokens::create_token;
    token get "/api/v1/tokens" => api::tokens::list_tokens;
    token get "/api/v1/tokens/{id}" => api::tokens::get_token;
    token delete "/api/v1/tokens/{id}" => api::tokens::revoke_token;
    token get "/domains/{id}" => pages::domain::show_domain;
    token post "/domains/{id}/check" => pages::domain::post_check;
    token post "/domains/{id}/remove" => pages::domain::post_remove;
}

/// The router.
pub fn router(state: WebState) -> Router {
    let mut router = Router::new();
    for (path, handler) in each() {
        router = router.route(path, handler);
    }
    router
        .fallback(|| async { Problem::no_route() })
        .method_not_allowed_fallback(other_method)
        .layer(from_fn(tag_answers))
        .layer(from_fn_with_state(state.clone(), write_problems))
        .layer(from_fn_with_state(Arc::new(Pace::new(state.settings.api)), pace::keep))
        .layer(from_fn_with_state(state.clone(), access::harden))
        .layer(from_fn_with_state(state.clone(), access::log))
        .with_state(state)
}

/// The router adds `Allow`, which is all that OPTIONS asks for.
async fn other_method(method: Method) -> axum::response::Response {
    if method == Method::OPTIONS { StatusCode::NO_CONTENT.into_response() } else { Problem::wrong_method().into_response() }
}
