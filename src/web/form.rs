//! What proves that a form was sent from our own page: where the browser says it came from, and a token of the session.

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign, verify};
use axum::http::{HeaderMap, header};
use serde::Deserialize;

use super::auth::PageCaller;
use super::problem::Problem;
use super::state::WebState;
use crate::model::secret::Secret;

/// The fields of a form that is only a button.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Button {
    pub(super) csrf: String,
}

/// What is signed with a session's text: nobody without it can make the token, and the token says nothing of it.
const MESSAGE: &[u8] = b"nameplate form";

/// The token of a session's forms.
pub(super) fn csrf(session: &Secret) -> String {
    let tag = sign(&Key::new(HMAC_SHA256, session.expose()), MESSAGE);
    tag.as_ref().iter().map(|b| format!("{b:02x}")).collect()
}

/// Whether the browser says that one of our own pages sent this. A browser says it with `Origin` at every POST; what says
/// nothing at all is no browser that we could protect.
pub(super) fn from_our_page(state: &WebState, headers: &HeaderMap) -> Result<(), Problem> {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("unreadable"));
    let origin = text(header::ORIGIN.as_str()).map(|origin| origin == state.settings.public_url);
    let site = text("sec-fetch-site").map(|site| site == "same-origin");
    match (origin, site) {
        (Some(true), None | Some(true)) | (None, Some(true)) => Ok(()),
        _ => Err(Problem::forged(format!("Open the page at {} and send the form from there.", state.settings.public_url))),
    }
}

/// Whether a form was sent from a page that this session was shown.
pub(super) fn check(state: &WebState, headers: &HeaderMap, reader: &PageCaller, token: &str) -> Result<(), Problem> {
    from_our_page(state, headers)?;
    let tag: Option<Vec<u8>> = (0..token.len())
        .step_by(2)
        .map(|i| token.get(i..i + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok()))
        .collect();
    let key = Key::new(HMAC_SHA256, reader.secret.expose());
    let fits = tag.is_some_and(|tag| verify(&key, MESSAGE, &tag).is_ok());
    if fits { Ok(()) } else { Err(Problem::forged("The form is out of date. Load the page again and repeat.".into())) }
}
