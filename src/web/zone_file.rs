//! The records of a domain as a file that a zone takes in.

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};

use super::texts as t;
use crate::app::show::DomainView;
use crate::model::zone_file;

/// The file of a domain's records, to be saved under its name.
pub(super) fn answer(view: &DomainView) -> Response {
    let name = view.hostname.as_str();
    let whole = t::zone_download_for(name).plain();
    let text = zone_file::document(&view.records, &[&whole, t::zone_download_load(), t::zone_download_keep()]);
    let mut response = text.into_response();
    let headers = response.headers_mut();
    // RFC 4027, and no more: what is ASCII needs no charset.
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/dns"));
    // A hostname has no letter that means anything here.
    let saved = format!("attachment; filename=\"{name}.zone\"");
    if let Ok(saved) = HeaderValue::from_str(&saved) {
        headers.insert(header::CONTENT_DISPOSITION, saved);
    }
    response
}
