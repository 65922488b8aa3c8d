//! All routes, listed once: the router is made from the list, and tests walk it.

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, delete, get, post};

use super::problem::{Problem, write_problems};
use super::state::WebState;
use super::{access, api, health, pages};

/// The largest body taken.
const BODY_LIMIT: usize = 64 * 1024;

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
    token post "/api/v1/tenants" => api::tenants::create_tenant;
    token get "/api/v1/tenants" => api::tenants::list_tenants;
    token get "/api/v1/tenants/{id}" => api::tenants::get_tenant;
    token delete "/api/v1/tenants/{id}" => api::offboard::remove_tenant;
    token get "/api/v1/tenants/{id}/dangling" => api::offboard::list_dangling;
    token post "/api/v1/domains" => api::domains::claim_domain;
    token get "/api/v1/domains" => api::domains::list_domains;
    token get "/api/v1/domains/{id}" => api::domains::get_domain;
    token post "/api/v1/domains/{id}/check" => api::domains::check_domain;
    token delete "/api/v1/domains/{id}" => api::domains::remove_domain;
    token get "/api/v1/events" => api::events::list_events;
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
        .method_not_allowed_fallback(|| async { Problem::wrong_method() })
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .layer(from_fn_with_state(state.clone(), write_problems))
        .layer(from_fn_with_state(state.clone(), access::harden))
        .layer(from_fn_with_state(state.clone(), access::log))
        .with_state(state)
}
