//! Files that are written while they are sent: whoever takes away a hundred thousand rows takes no memory of ours.

use std::future::Future;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures::stream;

use super::freshness::Streamed;
use crate::app::AppError;
use crate::app::bulk::files::Part;
use crate::telemetry::Chain;

/// Sends the parts that `part` makes, each from the row where the one before it ended. One that fails cuts the answer off, so
/// that nobody takes a half for the whole.
pub(super) async fn send<F, Fut>(kind: &'static str, name: &str, part: F) -> Result<Response, AppError>
where
    F: Fn(i64) -> Fut + Send + 'static,
    Fut: Future<Output = Result<Part, AppError>> + Send,
{
    // The first part is made before anything is answered: what fails at once is told as a problem.
    let first = part(0).await?;
    let rest = stream::unfold((Some(first), None::<i64>, part), |(ready, next, part)| async move {
        let made = match (ready, next) {
            (Some(first), _) => Ok(first),
            (None, Some(after)) => part(after).await,
            (None, None) => return None,
        };
        match made {
            Ok(Part { text, next }) => Some((Ok(Bytes::from(text)), (None, next, part))),
            Err(error) => {
                tracing::error!(error = %Chain(&error), "a file could not be written to its end");
                Some((Err(error), (None, None, part)))
            }
        }
    });
    let mut response = Body::from_stream(rest).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    if let Ok(value) = HeaderValue::from_str(&format!("attachment; filename=\"{name}\"")) {
        headers.insert(header::CONTENT_DISPOSITION, value);
    }
    response.extensions_mut().insert(Streamed);
    Ok(response)
}
