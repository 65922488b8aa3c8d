//! Whether this process can do its work.

use axum::extract::State;

use super::problem::Problem;
use super::state::WebState;

/// Answers once the store answered.
pub(super) async fn healthz(State(state): State<WebState>) -> Result<axum::Json<serde_json::Value>, Problem> {
    state.app.store.read().await?;
    Ok(axum::Json(serde_json::json!({ "status": "ok" })))
}
