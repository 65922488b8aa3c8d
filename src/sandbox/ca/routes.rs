//! One handler per resource.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::Value;

use super::entry::{ByAccount, ByKey, read};
use super::jws::decode;
use super::numbers::{AuthorizationNo, OrderNo};
use super::order::Wishes;
use super::problem::{Kind, Problem};
use super::render;
use super::server::Desk;

type Answer = Result<Response, Problem>;

pub(super) fn router() -> Router<Arc<Desk>> {
    Router::new()
        .route("/directory", get(directory))
        .route("/new-nonce", get(async || StatusCode::NO_CONTENT).head(async || StatusCode::OK))
        .route("/terms", get(async || "This CA certifies names for practice only."))
        .route("/new-account", post(new_account))
        .route("/account/{no}", post(account))
        .route("/new-order", post(new_order))
        .route("/order/{no}", post(order))
        .route("/order/{no}/finalize", post(finalize))
        .route("/authorization/{no}", post(authorization))
        .route("/challenge/{no}", post(challenge))
        .route("/certificate/{no}", post(certificate))
        .route("/revoke-certificate", post(revoke))
        .route("/renewal-info/{id}", get(renewal_info))
        .fallback(async || Problem::malformed("there is nothing at this URL").with_status(404))
        .method_not_allowed_fallback(async || Problem::malformed("this URL is asked by another method").with_status(405))
}

async fn directory(State(desk): State<Arc<Desk>>) -> Json<Value> {
    Json(render::directory(&desk))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NewAccount {
    #[serde(default)]
    contact: Vec<String>,
    #[serde(default)]
    terms_of_service_agreed: bool,
    #[serde(default)]
    only_return_existing: bool,
}

async fn new_account(State(desk): State<Arc<Desk>>, by: ByKey) -> Answer {
    let ask: NewAccount = read(&by.payload)?;
    let thumbprint = by.key.thumbprint();
    let mut state = desk.state();
    let (no, created) = match state.account_of_key(&thumbprint) {
        Some(no) => (no, false),
        None if ask.only_return_existing => {
            return Err(Problem::new(Kind::AccountDoesNotExist, "no account has this key, and none was to be made"));
        }
        None if !ask.terms_of_service_agreed => {
            return Err(Problem::new(Kind::UserActionRequired, "the terms of service are not agreed to"));
        }
        None => state.new_account(&thumbprint),
    };
    if created {
        desk.door().keys.insert(no.clone(), by.key);
        state.update_contacts(&no, ask.contact)?;
    }
    state.open_account(&no)?;
    let (status, contacts) = state.account(&no)?;
    let mut headers = HeaderMap::new();
    render::location(&mut headers, &desk.account_url(&no.to_string()));
    let code = if created { StatusCode::CREATED } else { StatusCode::OK };
    Ok((code, headers, render::account(status, contacts)).into_response())
}

#[derive(Deserialize)]
struct Change {
    contact: Option<Vec<String>>,
    status: Option<String>,
}

async fn account(State(desk): State<Arc<Desk>>, Path(no): Path<String>, by: ByAccount) -> Answer {
    if no != by.account.to_string() {
        return Err(Problem::new(Kind::Unauthorized, "this is another account"));
    }
    let mut state = desk.state();
    if !by.payload.is_empty() {
        let change: Change = read(&by.payload)?;
        if let Some(contacts) = change.contact {
            state.update_contacts(&by.account, contacts)?;
        }
        if wants_deactivation(change.status.as_deref())? {
            state.deactivate_account(&by.account)?;
        }
    }
    let (status, contacts) = state.account(&by.account)?;
    Ok(render::account(status, contacts).into_response())
}

fn wants_deactivation(status: Option<&str>) -> Result<bool, Problem> {
    match status {
        None => Ok(false),
        Some("deactivated") => Ok(true),
        Some(other) => Err(Problem::malformed(format!("status cannot be set to {other:?}, only to \"deactivated\""))),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NewOrder {
    identifiers: Vec<Identifier>,
    not_before: Option<String>,
    not_after: Option<String>,
    profile: Option<String>,
    replaces: Option<String>,
}

#[derive(Deserialize)]
struct Identifier {
    r#type: String,
    value: String,
}

async fn new_order(State(desk): State<Arc<Desk>>, by: ByAccount) -> Answer {
    let ask: NewOrder = read(&by.payload)?;
    if ask.not_before.is_some() || ask.not_after.is_some() {
        return Err(Problem::malformed("notBefore and notAfter are not supported"));
    }
    if let Some(odd) = ask.identifiers.iter().find(|i| i.r#type != "dns") {
        let detail = format!("identifier type {:?} is not supported, only \"dns\"", odd.r#type);
        return Err(Problem::new(Kind::UnsupportedIdentifier, detail));
    }
    let names: Vec<String> = ask.identifiers.into_iter().map(|i| i.value).collect();
    let wishes = Wishes { profile: ask.profile, replaces: ask.replaces };
    let order = desk.state().new_order_with(&by.account, &names, wishes, desk.now())?;
    Ok(render::order(&desk, StatusCode::CREATED, &order))
}

async fn order(State(desk): State<Arc<Desk>>, Path(no): Path<String>, by: ByAccount) -> Answer {
    by.only_looks()?;
    let order = desk.state().order(&by.account, &OrderNo::from(no.as_str()), desk.now())?;
    Ok(render::order(&desk, StatusCode::OK, &order))
}

#[derive(Deserialize)]
struct Finalize {
    csr: String,
}

async fn finalize(State(desk): State<Arc<Desk>>, Path(no): Path<String>, by: ByAccount) -> Answer {
    let csr = decode("csr", &read::<Finalize>(&by.payload)?.csr)?;
    let order = desk.state().finalize(&by.account, &OrderNo::from(no.as_str()), &csr, desk.now())?;
    Ok(render::order(&desk, StatusCode::OK, &order))
}

async fn authorization(State(desk): State<Arc<Desk>>, Path(no): Path<String>, by: ByAccount) -> Answer {
    let no = AuthorizationNo::from(no.as_str());
    let mut state = desk.state();
    if !by.payload.is_empty() && wants_deactivation(read::<Change>(&by.payload)?.status.as_deref())? {
        state.deactivate_authorization(&by.account, &no, desk.now())?;
    }
    let view = state.authorization(&by.account, &no, desk.now())?;
    drop(state);
    Ok(render::authorization(&desk, &view).into_response())
}

async fn challenge(State(desk): State<Arc<Desk>>, Path(no): Path<String>, by: ByAccount) -> Answer {
    let no = AuthorizationNo::from(no.as_str());
    // An empty payload only looks; an object says "ready" (§7.5.1).
    if !by.payload.is_empty() {
        let _: serde_json::Map<String, Value> = read(&by.payload)?;
        let ask = desk.state().respond(&by.account, &no, desk.now())?;
        if let Some(ask) = ask {
            desk.start_looking(ask);
        }
    }
    let view = desk.state().authorization(&by.account, &no, desk.now())?;
    Ok(render::challenge(&desk, &view))
}

async fn certificate(State(desk): State<Arc<Desk>>, Path(no): Path<String>, by: ByAccount) -> Answer {
    by.only_looks()?;
    let state = desk.state();
    let chain = state.certificate(&by.account, &OrderNo::from(no.as_str()), desk.now())?;
    Ok(([(CONTENT_TYPE, "application/pem-certificate-chain")], chain.to_owned()).into_response())
}

#[derive(Deserialize)]
struct Revoke {
    certificate: String,
    reason: Option<u64>,
}

async fn revoke(State(desk): State<Arc<Desk>>, by: ByAccount) -> Answer {
    let ask: Revoke = read(&by.payload)?;
    let certificate = decode("certificate", &ask.certificate)?;
    desk.state().revoke(&by.account, &certificate, ask.reason)?;
    Ok(StatusCode::OK.into_response())
}

async fn renewal_info(State(desk): State<Arc<Desk>>, Path(id): Path<String>) -> Answer {
    let mut state = desk.state();
    let window = state.renewal_window(&id, desk.now())?;
    let why = state.is_revoked(&id).then(|| desk.url("/revoked"));
    Ok(render::renewal_info(window, why.as_deref()))
}
