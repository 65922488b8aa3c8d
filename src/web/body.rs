//! Bodies, read whole within a size and a time.

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};

use super::problem::Problem;
use super::state::WebState;

/// The largest body taken.
pub(super) const BODY_LIMIT: usize = 64 * 1024;

/// The bytes of a body.
pub(super) async fn read(body: Body, state: &WebState) -> Result<Bytes, Problem> {
    let timeout = state.settings.api.body_timeout;
    let collected = tokio::select! {
        biased;
        collected = Limited::new(body, BODY_LIMIT).collect() => collected,
        () = state.app.env.sleep(timeout) => {
            let detail = format!("The body did not arrive within {} s. Nothing was changed; send it again.", timeout.as_secs());
            return Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "body_too_slow", "The body came too slowly", detail));
        }
    };
    match collected {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(e) if e.is::<LengthLimitError>() => {
            let detail = format!("The body is larger than {BODY_LIMIT} bytes, which is the most.");
            Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", "The body is too large", detail))
        }
        Err(_) => {
            let detail = "The body broke off before its end. Nothing was changed; send it again.";
            Err(Problem::new(StatusCode::BAD_REQUEST, "body_cut_off", "The body broke off", detail))
        }
    }
}
