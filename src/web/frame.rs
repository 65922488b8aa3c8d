//! What stands around every page: brand, navigation, who is signed in.
//!
//! The layout reads it as a runtime value (`askama::get_value`), so that a page's struct carries only what is the page's own.
//! A layer around the router opens one frame a request; the extractor of a session writes into it who reads; rendering a page
//! takes it from there. Outside a request, as in tests of a single page, there is none and the layout does without.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use askama::Values;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;

use super::brand::Brand;
use super::state::WebState;
use crate::app::sessions::SignedIn;
use crate::app::tokens::Principal;

tokio::task_local! {
    static FRAME: Arc<Frame>;
}

/// Who reads.
#[derive(Debug)]
pub(super) struct Reader {
    /// Whether it is an operator.
    pub(super) operator: bool,
    /// What to call whom.
    pub(super) name: String,
    /// The token of the sign-out form.
    pub(super) csrf: String,
    /// Where a tenant came from.
    pub(super) return_url: Option<String>,
}

/// The frame of the pages of one request.
pub(super) struct Frame {
    /// How the pages present themselves.
    pub(super) brand: Brand,
    reader: OnceLock<Reader>,
}

impl Frame {
    /// Who reads, once that is known.
    pub(super) fn reader(&self) -> Option<&Reader> {
        self.reader.get()
    }
}

impl Values for Frame {
    fn get_value<'a>(&'a self, key: &str) -> Option<&'a dyn Any> {
        (key == "frame").then_some(self as &dyn Any)
    }
}

/// Opens the frame around everything that may render a page.
pub(super) async fn around(State(state): State<WebState>, request: Request, next: Next) -> Response {
    let frame = Frame { brand: state.settings.brand.clone(), reader: OnceLock::new() };
    FRAME.scope(Arc::new(frame), next.run(request)).await
}

/// Notes who reads the page that is about to be rendered.
pub(super) fn read_by(signed_in: &SignedIn, csrf: &str) {
    let operator = signed_in.caller.principal == Principal::Operator;
    let name = if operator { Some("Operator".to_owned()) } else { signed_in.tenant_name.clone() };
    let reader = Reader {
        operator,
        name: super::visible::visible(&name.unwrap_or_default()),
        csrf: csrf.to_owned(),
        return_url: signed_in.return_url.clone(),
    };
    // Outside a request there is no frame to write into; the first reader of a request is its only one.
    let _ = FRAME.try_with(|frame| frame.reader.set(reader));
}

/// Renders a page in the frame of this request.
pub(super) fn render(page: &impl askama::Template) -> askama::Result<String> {
    match FRAME.try_with(Arc::clone) {
        Ok(frame) => page.render_with_values(&*frame),
        Err(_) => page.render(),
    }
}
