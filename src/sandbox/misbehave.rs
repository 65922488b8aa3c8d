//! The CA's bad days, to be pressed: a page beside the pretend DNS provider's, and the same as JSON.
//!
//! `GET /ca/faults` tells what is still to go wrong and what did; `POST /ca/faults` takes one [`Fault`] and answers with its
//! number; `DELETE /ca/faults/{no}` takes one out, `DELETE /ca/faults` all. The page has the usual ones as buttons.

use askama::Template;
use axum::extract::{Form, Path, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::{delete, get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};

use super::ca::{At, Endpoint, Fault, Flaw, Kind, Limit, Script, Twist, What, When};

/// So many of what happened are shown, latest first.
const SHOWN: usize = 20;

/// What can be pressed: a word for the form, what it is called, what happens.
fn presets() -> [(&'static str, &'static str, Fault); 16] {
    let failed = Twist::ValidationFails {
        kind: Kind::Unauthorized,
        detail: "During secondary validation: Invalid response from the name: 404".to_owned(),
    };
    let dns_only = Twist::Offers { challenges: vec!["dns-01".to_owned()] };
    let storm = Fault::once(At::Signed, What::BadNonce).when(When::Next(10));
    let of_name = |what| Fault::once(Endpoint::NewOrder, what);
    [
        ("nonces", "Refuse the nonce of the next ten requests", storm),
        ("orders", "Too many orders of this account, for a minute", of_name(What::limited_for(Limit::NewOrders, 60))),
        (
            "domain",
            "Too many certificates for the registered domain, for a minute",
            of_name(What::limited_for(Limit::RegisteredDomain, 60)),
        ),
        ("set", "Too many certificates for the same names, no time told", of_name(What::limited(Limit::ExactSet))),
        ("failures", "Too many failed authorizations", of_name(What::limited(Limit::FailedAuthorizations))),
        ("paused", "The account is paused for the name", of_name(What::limited(Limit::Paused))),
        (
            "refused",
            "Refuse the name by policy",
            of_name(What::refused(Kind::RejectedIdentifier, "policy forbids this name")),
        ),
        ("down", "Show a page instead of every answer", Fault::once(At::Everywhere, What::page(503))),
        ("slow", "Take five seconds for an answer", Fault::once(At::Everywhere, What::Slow { seconds: 5 })),
        ("frozen", "Take the order and never answer", of_name(What::FrozenAfter)),
        ("lost", "Take the order and break the connection", of_name(What::DropAfter)),
        ("invalid", "Fail the validation", of_name(failed.into())),
        ("no-http", "Offer no http-01", of_name(dns_only.into())),
        ("vanished", "Forget the order", Fault::once(Endpoint::Order, Twist::OrderVanished)),
        (
            "processing",
            "Take two minutes to issue",
            Fault::once(Endpoint::Finalize, Twist::ProcessingLasts { seconds: 120 }),
        ),
        ("other-key", "Certify another key", Fault::once(Endpoint::Finalize, Twist::Certificate { flaw: Flaw::OtherKey })),
    ]
}

#[derive(Template)]
#[template(path = "sandbox/ca.html")]
struct Page {
    presets: Vec<(&'static str, &'static str)>,
    to_come: Vec<ToCome>,
    happened: Vec<Past>,
}

struct ToCome {
    no: u64,
    what: &'static str,
    at: String,
    when: String,
}

struct Past {
    at: String,
    endpoint: &'static str,
    what: &'static str,
}

#[derive(Deserialize)]
struct Pressed {
    preset: String,
    #[serde(default)]
    always: bool,
}

#[derive(Deserialize)]
struct Behave {
    no: Option<u64>,
}

/// The page and the API of one script.
pub fn router(script: Script) -> Router {
    Router::new()
        .route("/ca", get(page))
        .route("/ca/misbehave", post(press))
        .route("/ca/behave", post(behave))
        .route("/ca/faults", get(list).post(add).delete(clear))
        .route("/ca/faults/{no}", delete(remove))
        .with_state(script)
}

async fn page(State(script): State<Script>) -> Response {
    let to_come = script.entries().into_iter().map(|e| ToCome {
        no: e.no,
        what: e.fault.what.name(),
        at: e.fault.at.to_string(),
        when: e.fault.when.to_string(),
    });
    let happened = script.happened().into_iter().rev().take(SHOWN).map(|h| Past {
        at: h.at.rfc3339(),
        endpoint: h.endpoint.name(),
        what: h.what.name(),
    });
    let page = Page {
        presets: presets().into_iter().map(|(word, title, _)| (word, title)).collect(),
        to_come: to_come.collect(),
        happened: happened.collect(),
    };
    match page.render() {
        Ok(html) => Html(html).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn press(State(script): State<Script>, Form(pressed): Form<Pressed>) -> Response {
    let Some((_, _, fault)) = presets().into_iter().find(|(word, ..)| *word == pressed.preset) else {
        return (StatusCode::UNPROCESSABLE_ENTITY, "there is no such button").into_response();
    };
    script.add(if pressed.always { fault.when(When::Always) } else { fault });
    Redirect::to("/ca").into_response()
}

async fn behave(State(script): State<Script>, Form(behave): Form<Behave>) -> Redirect {
    match behave.no {
        Some(no) => {
            // One that had its turn meanwhile is gone already, which is what was asked for.
            script.remove(no);
        }
        None => script.clear(),
    }
    Redirect::to("/ca")
}

async fn list(State(script): State<Script>) -> Json<Value> {
    let asked: serde_json::Map<String, Value> =
        Endpoint::ALL.into_iter().map(|e| (e.name().to_owned(), json!(script.asked(e)))).collect();
    Json(json!({ "faults": script.entries(), "happened": script.happened(), "asked": asked }))
}

async fn add(State(script): State<Script>, Json(fault): Json<Fault>) -> Response {
    (StatusCode::CREATED, Json(json!({ "no": script.add(fault) }))).into_response()
}

async fn remove(State(script): State<Script>, Path(no): Path<u64>) -> StatusCode {
    if script.remove(no) { StatusCode::NO_CONTENT } else { StatusCode::NOT_FOUND }
}

async fn clear(State(script): State<Script>) -> StatusCode {
    script.clear();
    StatusCode::NO_CONTENT
}
