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
use super::{access, api, frame, health, measure, pages};

/// A route, as tests and documentation see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The method.
    pub method: &'static str,
    /// The path, with `{id}` in place of an id.
    pub path: &'static str,
    /// Whether a token, or on pages a session, is needed.
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
    open get "/connected" => pages::back::show_back;
    open get "/assets/style.css" => pages::assets::style;
    open get "/assets/brand.css" => pages::assets::brand;
    open get "/assets/portal.js" => pages::assets::script;
    open get "/assets/icon.svg" => pages::assets::icon;
    open get "/assets/logo" => pages::assets::logo;
    open get "/assets/api-docs.css" => api::docs::style;
    open get "/assets/operator.css" => pages::operator::style;
    open get "/api/openapi.json" => api::description::openapi;
    open get "/api/docs" => api::docs::show_docs;
    open get "/api/docs/documents" => api::docs::show_documents;
    open get "/api/docs/problems" => api::docs::show_problems;
    token post "/api/v1/tenants" => api::tenants::create_tenant;
    token get "/api/v1/tenants" => api::tenants::list_tenants;
    token get "/api/v1/tenants/{id}" => api::tenants::get_tenant;
    token delete "/api/v1/tenants/{id}" => api::offboard::remove_tenant;
    token get "/api/v1/tenants/{id}/dangling" => api::offboard::list_dangling;
    token patch "/api/v1/tenants/{id}" => api::tenants::change_tenant;
    token post "/api/v1/tenants/{id}/contacts" => api::contacts::add_contact;
    token get "/api/v1/tenants/{id}/contacts" => api::contacts::list_contacts;
    token delete "/api/v1/tenants/{id}/contacts/{contact}" => api::contacts::remove_contact;
    token post "/api/v1/domains" => api::domains::claim_domain;
    token get "/api/v1/domains" => api::domains::list_domains;
    token get "/api/v1/domains/{id}" => api::domains::get_domain;
    token get "/api/v1/domains/{id}/apply-link" => api::apply_link::get_apply_link;
    token get "/api/v1/domains/{id}/records.zone" => api::zone_file::get_zone_file;
    token post "/api/v1/domains/{id}/check" => api::domains::check_domain;
    token delete "/api/v1/domains/{id}" => api::domains::remove_domain;
    token post "/api/v1/domains/{id}/undo-removal" => api::letting_go::undo_removal;
    token post "/api/v1/domains/{id}/end-release" => api::letting_go::end_release;
    token get "/api/v1/left-behind" => api::letting_go::list_left_behind;
    token patch "/api/v1/domains/{id}" => api::redirect::change_domain;
    token get "/api/v1/domains/{id}/attempts" => api::history::list_attempts;
    token get "/api/v1/domains/{id}/evidence" => api::history::list_evidence;
    token get "/api/v1/events" => api::events::list_events;
    token get "/api/v1/explain" => api::explain::explain_hostname;
    token get "/api/v1/alerts" => api::alerts::list_alerts;
    token post "/api/v1/webhooks" => api::webhooks::create_webhook;
    token get "/api/v1/webhooks" => api::webhooks::list_webhooks;
    token get "/api/v1/webhooks/{id}" => api::webhooks::get_webhook;
    token delete "/api/v1/webhooks/{id}" => api::webhooks::remove_webhook;
    token post "/api/v1/webhooks/{id}/rotate-secret" => api::webhooks::rotate_webhook_secret;
    token post "/api/v1/webhooks/{id}/enable" => api::webhooks::enable_webhook;
    token post "/api/v1/webhooks/{id}/test" => api::deliveries::test_webhook;
    token get "/api/v1/webhooks/{id}/deliveries" => api::deliveries::list_deliveries;
    token post "/api/v1/webhooks/{id}/replay" => api::deliveries::replay_deliveries;
    token post "/api/v1/portal-links" => api::links::create_portal_link;
    token get "/api/v1/portal-links" => api::links::list_portal_links;
    token delete "/api/v1/portal-links/{id}" => api::links::revoke_portal_link;
    token post "/api/v1/hand-off-links" => api::links::create_hand_off_link;
    token get "/api/v1/hand-off-links" => api::links::list_hand_off_links;
    token delete "/api/v1/hand-off-links/{id}" => api::links::revoke_hand_off_link;
    token get "/api/v1/certificates" => api::certificates::list_certificates;
    token get "/api/v1/certificates/{id}" => api::certificates::get_certificate;
    token post "/api/v1/reissues" => api::reissues::create_reissue;
    token get "/api/v1/reissues" => api::reissues::list_reissues;
    token get "/api/v1/reissues/{id}" => api::reissues::get_reissue;
    token post "/api/v1/reissues/{id}/cancel" => api::reissues::cancel_reissue;
    token get "/api/v1/orders" => api::orders::list_orders;
    token get "/api/v1/budget" => api::budget::show_budget;
    token post "/api/v1/imports" => api::bulk::create_import;
    token get "/api/v1/imports" => api::bulk::list_imports;
    token get "/api/v1/imports/{id}" => api::bulk::get_import;
    token post "/api/v1/imports/{id}/pause" => api::bulk::pause_import;
    token post "/api/v1/imports/{id}/resume" => api::bulk::resume_import;
    token post "/api/v1/imports/{id}/cancel" => api::bulk::cancel_import;
    token post "/api/v1/imports/{id}/start" => api::bulk::start_import;
    token post "/api/v1/imports/{id}/check" => api::bulk_check::check_import;
    token get "/api/v1/imports/{id}/rows" => api::bulk_files::list_import_rows;
    token get "/api/v1/imports/{id}/results" => api::bulk_files::get_import_results;
    token get "/api/v1/imports/{id}/records" => api::bulk_files::get_import_records;
    token get "/api/v1/recovery" => api::recovery::get_recovery;
    token post "/api/v1/recovery/end" => api::recovery::end_recovery;
    token get "/api/v1/edges" => api::edges::list_edges;
    token get "/api/v1/edges/{id}" => api::edges::get_edge;
    token post "/api/v1/edges/{id}/drain" => api::edges::drain_edge;
    token post "/api/v1/edges/{id}/undrain" => api::edges::undrain_edge;
    token post "/api/v1/tokens" => api::tokens::create_token;
    token get "/api/v1/tokens" => api::tokens::list_tokens;
    token get "/api/v1/tokens/{id}" => api::tokens::get_token;
    token delete "/api/v1/tokens/{id}" => api::tokens::revoke_token;
    open get "/enter/{token}" => pages::enter::show_link;
    open post "/enter/{token}" => pages::enter::use_link;
    open get "/hand-off/{token}" => pages::hand_off::show_hand_off;
    open get "/hand-off/{token}/records.zone" => pages::zone_file::show_handed_zone;
    open get "/hand-off/{token}/live" => pages::live::follow_hand_off;
    token post "/sign-out" => pages::sign_in::post_sign_out;
    token get "/domains" => pages::list::list_pages;
    token get "/domains/live" => pages::live::follow_list;
    token get "/domains/add" => pages::add::show_add;
    token post "/domains/add" => pages::add::post_add;
    token get "/domains/{id}" => pages::domain::show_domain;
    token get "/domains/{id}/records.zone" => pages::zone_file::show_zone;
    token get "/domains/{id}/live" => pages::live::follow_domain;
    token get "/domains/{id}/history" => pages::history::show_history;
    token post "/domains/{id}/check" => pages::domain::post_check;
    token get "/domains/{id}/remove" => pages::remove::show_remove;
    token post "/domains/{id}/remove" => pages::remove::post_remove;
    token post "/domains/{id}/undo-removal" => pages::remove::post_undo;
    token post "/domains/{id}/hand-off" => pages::share::post_hand_off;
    token post "/domains/{id}/hand-off/revoke" => pages::share::post_revoke;
    token get "/imports" => pages::bulk::list_imports;
    token post "/imports" => pages::bulk::post_import;
    token get "/imports/{id}" => pages::bulk_show::show_import;
    token get "/imports/{id}/live" => pages::bulk_live::follow_import;
    token get "/imports/{id}/results" => pages::bulk_show::take_results;
    token get "/imports/{id}/records" => pages::bulk_show::take_records;
    token get "/imports/{id}/claims" => pages::bulk_claims::list_claims;
    token post "/imports/{id}/check" => pages::bulk_claims::post_check;
    token post "/imports/{id}/turn" => pages::bulk::post_turn;
    open get "/operator/sign-in" => pages::sign_in::show_sign_in;
    open post "/operator/sign-in" => pages::sign_in::post_sign_in;
    token get "/operator" => pages::operator::overview::show;
    token get "/operator/domains" => pages::operator::domains::list;
    token get "/operator/domains/{id}" => pages::operator::domain::show;
    token post "/operator/domains/{id}/end-release" => pages::operator::domain::post_end;
    token get "/operator/left-behind" => pages::operator::left_behind::list;
    token get "/operator/tenants" => pages::operator::tenants::list;
    token get "/operator/tenants/{id}" => pages::operator::tenants::show;
    token get "/operator/tenants/{id}/remove" => pages::operator::tenant_remove::show;
    token post "/operator/tenants/{id}/remove" => pages::operator::tenant_remove::post;
    token get "/operator/queue" => pages::operator::queue::show;
    token get "/operator/budget" => pages::operator::budget::show;
    token get "/operator/edges" => pages::operator::edges::show;
    token get "/operator/recovery" => pages::operator::recovery::show;
    token post "/operator/recovery/end" => pages::operator::recovery::post_end;
    token get "/operator/alerts" => pages::operator::alerts::show;
    token get "/operator/expiry" => pages::operator::expiry::show;
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
        .layer(from_fn_with_state(state.clone(), frame::around))
        .layer(from_fn_with_state(Arc::new(Pace::new(state.settings.api)), pace::keep))
        .layer(from_fn_with_state(state.clone(), access::harden))
        .layer(from_fn_with_state(state.clone(), access::log))
        .layer(from_fn_with_state(state.clone(), measure::count))
        .with_state(state)
}

/// The router adds `Allow`, which is all that OPTIONS asks for.
async fn other_method(method: Method) -> axum::response::Response {
    if method == Method::OPTIONS { StatusCode::NO_CONTENT.into_response() } else { Problem::wrong_method().into_response() }
}
