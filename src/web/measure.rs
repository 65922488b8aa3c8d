//! Counting requests, by the route that answered.

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;

use super::router::ROUTES;
use super::state::WebState;

/// Counts a request. Paths come from outside and there is no end of them; the list of routes is ours.
pub(super) async fn count(State(state): State<WebState>, request: Request, next: Next) -> Response {
    let began = state.app.env.now();
    let method = request.method().clone();
    let matched = request.extensions().get::<MatchedPath>();
    let known = matched.and_then(|path| ROUTES.iter().find(|route| route.path == path.as_str()));
    let route = known.map_or("other", |route| route.path);
    let response = next.run(request).await;
    let took = state.app.env.now().since(began);
    state.app.meters.api_request(method.as_str(), route, response.status().as_u16(), took);
    response
}
