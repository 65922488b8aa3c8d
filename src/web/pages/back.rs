//! Where a DNS provider sends somebody back to who came from a hand-off link: the link itself is nothing it should learn.

use askama::Template;
use axum::response::Html;

use crate::web::problem::{Problem, html};
use crate::web::texts as t;

#[derive(Template)]
#[template(path = "back.html")]
pub(super) struct BackPage;

/// `GET /connected`: whatever the provider adds to the address says nothing that counts; DNS does.
pub(in crate::web) async fn show_back() -> Result<Html<String>, Problem> {
    html(&BackPage)
}
