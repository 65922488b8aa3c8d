//! What proves that a form was sent from its own page: the Origin check, and a token made from the reader's own.

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign, verify};
use axum::http::{HeaderMap, header};
use serde::Deserialize;

use crate::model::id::DomainId;
use crate::model::secret::Secret;
use crate::web::problem::Problem;
use crate::web::state::WebState;

/// The fields of both forms.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct FormBody {
    csrf: String,
}

fn message(id: &DomainId) -> String {
    format!("form of {id}")
}

/// The token of a domain's forms for the reader with this API token: nobody else can make it, and it says nothing of it.
pub(super) fn csrf(token: &Secret, id: &DomainId) -> String {
    let tag = sign(&Key::new(HMAC_SHA256, token.expose()), message(id).as_bytes());
    tag.as_ref().iter().map(|b| format!("{b:02x}")).collect()
}

/// Whether the form was sent from its page.
pub(super) fn check(
    state: &WebState,
    headers: &HeaderMap,
    token: &Secret,
    id: &DomainId,
    body: &FormBody,
) -> Result<(), Problem> {
    let header = |name: &str| headers.get(name).and_then(|v| v.to_str().ok());
    let ours = match header(header::ORIGIN.as_str()) {
        Some(origin) => origin == state.settings.public_url,
        None => header("sec-fetch-site") == Some("same-origin"),
    };
    if !ours {
        return Err(Problem::forged(format!("Open the page at {} and send the form from there.", state.domain_page(id))));
    }
    let tag: Option<Vec<u8>> = (0..body.csrf.len())
        .step_by(2)
        .map(|i| body.csrf.get(i..i + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok()))
        .collect();
    let key = Key::new(HMAC_SHA256, token.expose());
    let fits = tag.is_some_and(|tag| verify(&key, message(id).as_bytes(), &tag).is_ok());
    if fits { Ok(()) } else { Err(Problem::forged("The form is out of date. Load the page again and repeat.".into())) }
}
