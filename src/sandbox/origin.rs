//! The application behind the edge: a page that shows which tenant it was asked for.

use askama::Template;
use axum::Router;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use serde::{Deserialize, Serialize};

/// What a request told the origin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// The tenant's slug, by the edge's word.
    pub tenant: Option<String>,
    /// The tenant's id.
    pub tenant_id: Option<String>,
    /// The host the visitor asked for.
    pub host: Option<String>,
    /// The scheme.
    pub scheme: Option<String>,
}

#[derive(Template)]
#[template(path = "sandbox/origin.html")]
struct Page<'a> {
    asked: &'a Asked,
}

/// The application: one page at every path, JSON for those who accept nothing else.
pub fn router() -> Router {
    Router::new().fallback(answer)
}

async fn answer(headers: HeaderMap) -> Response {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let asked = Asked {
        tenant: text("x-tenant-slug"),
        tenant_id: text("x-tenant-id"),
        host: text("x-forwarded-host"),
        scheme: text("x-forwarded-proto"),
    };
    if headers.get(header::ACCEPT).is_some_and(|accept| accept == "application/json") {
        return axum::Json(asked).into_response();
    }
    match (Page { asked: &asked }).render() {
        Ok(html) => Html(html).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
