//! The JSON of accounts, orders, authorizations and challenges, with their URLs.

use axum::Json;
use axum::http::header::{LINK, LOCATION, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::account::AccountStatus;
use super::problem::{Problem, retry_after};
use super::renewal::ASK_AGAIN;
use super::server::Desk;
use super::views::{AuthorizationView, OrderView};
use crate::model::moment::Moment;

/// The directory (RFC 8555 §7.1.1).
pub(super) fn directory(desk: &Desk) -> Value {
    let settings = desk.state().settings().clone();
    json!({
        "newNonce": desk.url("/new-nonce"),
        "newAccount": desk.url("/new-account"),
        "newOrder": desk.url("/new-order"),
        "revokeCert": desk.url("/revoke-certificate"),
        "renewalInfo": desk.url("/renewal-info"),
        "meta": {
            "termsOfService": desk.url("/terms"),
            "caaIdentities": settings.caa_identities,
            "externalAccountRequired": false,
            "profiles": settings.profiles,
        },
    })
}

pub(super) fn account(status: AccountStatus, contacts: &[String]) -> Json<Value> {
    let status = match status {
        AccountStatus::Valid => "valid",
        AccountStatus::Deactivated => "deactivated",
    };
    Json(json!({ "status": status, "contact": contacts }))
}

pub(super) fn order(desk: &Desk, status: StatusCode, order: &OrderView) -> Response {
    let url = desk.url(&format!("/order/{}", order.no));
    let mut doc = json!({
        "status": order.status.as_str(),
        "expires": order.expires.rfc3339(),
        "identifiers": order.names.iter().map(|n| identifier(n)).collect::<Vec<_>>(),
        "authorizations": order.authorizations.iter().map(|a| desk.url(&format!("/authorization/{a}"))).collect::<Vec<_>>(),
        "finalize": format!("{url}/finalize"),
    });
    if order.status == super::OrderStatus::Valid {
        doc["certificate"] = json!(desk.url(&format!("/certificate/{}", order.no)));
    }
    if let Some(error) = &order.error {
        doc["error"] = error.json();
    }
    if let Some(profile) = &order.profile {
        doc["profile"] = json!(profile);
    }
    if let Some(replaces) = &order.replaces {
        doc["replaces"] = json!(replaces);
    }
    let mut headers = HeaderMap::new();
    location(&mut headers, &url);
    if let Some(wait) = order.ready_in {
        headers.insert(RETRY_AFTER, retry_after(wait));
    }
    (status, headers, Json(doc)).into_response()
}

pub(super) fn authorization(desk: &Desk, a: &AuthorizationView) -> Json<Value> {
    Json(json!({
        "status": a.status.as_str(),
        "expires": a.expires.rfc3339(),
        "identifier": identifier(&a.name),
        "challenges": a.offers.iter().map(|kind| challenge_object(desk, a, kind)).collect::<Vec<_>>(),
    }))
}

pub(super) fn challenge(desk: &Desk, a: &AuthorizationView) -> Response {
    let mut headers = HeaderMap::new();
    let up = format!("<{}>;rel=\"up\"", desk.url(&format!("/authorization/{}", a.no)));
    if let Ok(value) = HeaderValue::from_str(&up) {
        headers.insert(LINK, value);
    }
    (headers, Json(challenge_object(desk, a, "http-01"))).into_response()
}

fn challenge_object(desk: &Desk, a: &AuthorizationView, kind: &str) -> Value {
    let mut doc = json!({
        "type": kind,
        "url": desk.url(&format!("/challenge/{}", a.no)),
        "token": a.token,
        "status": a.challenge.as_str(),
    });
    if let Some(at) = a.validated {
        doc["validated"] = json!(at.rfc3339());
    }
    if let Some(error) = &a.error {
        doc["error"] = Problem::json(error);
    }
    doc
}

/// A renewal window (RFC 9773 §4.2).
pub(super) fn renewal_info((start, end): (Moment, Moment), why: Option<&str>) -> Response {
    let again = [(RETRY_AFTER, retry_after(ASK_AGAIN))];
    let mut doc = json!({ "suggestedWindow": { "start": start.rfc3339(), "end": end.rfc3339() } });
    if let Some(why) = why {
        doc["explanationURL"] = json!(why);
    }
    (again, Json(doc)).into_response()
}

fn identifier(name: &str) -> Value {
    json!({ "type": "dns", "value": name })
}

/// Our own URLs are plain ASCII; one that is not is left out rather than sent broken.
pub(super) fn location(headers: &mut HeaderMap, url: &str) {
    if let Ok(value) = HeaderValue::from_str(url) {
        headers.insert(LOCATION, value);
    }
}
