//! The one cookie: a session's text, bound to this origin.

use axum::http::{HeaderMap, HeaderValue, header};

use super::state::WebState;
use crate::app::sessions::Began;
use crate::model::secret::Secret;

/// Browsers take a cookie of this name only with Secure, for the whole origin and for no other host.
const NAME: &str = "__Host-nameplate";
/// Without TLS, which is on loopback only, Secure cookies are kept by some browsers and dropped by others.
const LOOPBACK_NAME: &str = "nameplate-loopback";

fn is_secure(state: &WebState) -> bool {
    state.settings.public_url.starts_with("https://")
}

fn name(state: &WebState) -> &'static str {
    if is_secure(state) { NAME } else { LOOPBACK_NAME }
}

/// What the browser's cookie holds. Of two of the same name neither is believed: somebody else set one of them.
pub(super) fn read(state: &WebState, headers: &HeaderMap) -> Option<Secret> {
    let name = name(state);
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok()).flat_map(|v| v.split(';'));
    let mut ours = all.filter_map(|pair| pair.trim().split_once('=')).filter(|(key, _)| *key == name);
    let (_, value) = ours.next()?;
    ours.next().is_none().then(|| Secret::from(value.to_owned()))
}

fn attributes(state: &WebState) -> &'static str {
    if !is_secure(state) {
        "Path=/; HttpOnly; SameSite=Lax"
    } else if state.settings.portal.frame_ancestors.is_empty() {
        "Path=/; Secure; HttpOnly; SameSite=Lax"
    } else {
        // Inside the frame of another site only such a cookie is sent, kept apart for each framing site.
        "Path=/; Secure; HttpOnly; SameSite=None; Partitioned"
    }
}

/// Sets the cookie of a session that was just begun.
pub(super) fn set(state: &WebState, began: &Began) -> Option<HeaderValue> {
    let text = began.text.expose_str()?;
    let age = began.lifetime.as_secs();
    let mut value = HeaderValue::from_str(&format!("{}={text}; Max-Age={age}; {}", name(state), attributes(state))).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Takes the cookie away.
pub(super) fn clear(state: &WebState) -> Option<HeaderValue> {
    HeaderValue::from_str(&format!("{}=; Max-Age=0; {}", name(state), attributes(state))).ok()
}
