//! Style, script and picture: the only things that a page loads.

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use crate::web::problem::Problem;
use crate::web::state::WebState;

fn asset(kind: &'static str, body: impl IntoResponse) -> Response {
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "public, max-age=300")], body).into_response()
}

/// `GET /assets/style.css`
pub(in crate::web) async fn style() -> Response {
    asset("text/css; charset=utf-8", include_str!("../../../templates/style.css"))
}

/// `GET /assets/brand.css`: the variables that the configuration decides.
pub(in crate::web) async fn brand(State(state): State<WebState>) -> Response {
    asset("text/css; charset=utf-8", state.settings.brand.css.to_string())
}

/// `GET /assets/portal.js`
pub(in crate::web) async fn script() -> Response {
    asset("text/javascript; charset=utf-8", include_str!("../../../templates/portal.js"))
}

/// `GET /assets/logo`: the brand's picture, where it is a file of ours.
pub(in crate::web) async fn logo(State(state): State<WebState>) -> Result<Response, Problem> {
    let logo = state.settings.brand.file.as_ref().ok_or_else(Problem::no_route)?;
    Ok(asset(logo.kind, logo.bytes.to_vec()))
}

/// `GET /assets/icon.svg`: our plate, for tabs.
pub(in crate::web) async fn icon() -> Response {
    asset("image/svg+xml", include_str!("../../../templates/icon.svg"))
}
