//! An open page of an import is told when the import moved: its version is looked at once a second, while somebody looks.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::stream;
use serde::Deserialize;

use crate::model::id::ImportId;
use crate::model::secret::Secret;
use crate::store::bulk;
use crate::web::api::bulk::own_import;
use crate::web::input::{Asked, Id};
use crate::web::live::Seat;
use crate::web::problem::Problem;
use crate::web::state::WebState;
use crate::web::{auth, cookie};

/// Between two looks.
const PACE: Duration = Duration::from_secs(1);
/// Looks without news after which a comment is sent, and the session is looked at.
const QUIET: u32 = 20;

#[derive(Deserialize)]
pub(in crate::web) struct LiveQuery {
    /// The version that the page shows.
    #[serde(default)]
    after: i64,
}

struct Follower {
    state: WebState,
    id: ImportId,
    seen: i64,
    secret: Secret,
    first: bool,
    over: bool,
    _seat: Seat,
}

impl Follower {
    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, Self)> {
        if self.over {
            return None;
        }
        if std::mem::take(&mut self.first) {
            return Some((Ok(Bytes::from_static(b"retry: 5000\n\n")), self));
        }
        let mut said = ": still here\n\n";
        for _ in 0..QUIET {
            tokio::select! {
                () = self.state.live.closed() => return None,
                () = self.state.app.env.sleep(PACE) => {}
            }
            // While the store cannot be asked there is no news.
            match bulk::version(&self.state.app.store, &self.id).await {
                Ok(Some(version)) if version != self.seen => {
                    self.seen = version;
                    said = "event: changed\ndata: {}\n\n";
                    break;
                }
                Ok(Some(_)) | Err(_) => {}
                Ok(None) => {
                    self.over = true;
                    break;
                }
            }
        }
        let may = auth::signed_in(&self.state, &self.secret).await.map_or(true, |reader| reader.is_some());
        if self.over || !may {
            self.over = true;
            said = "event: over\ndata: {}\n\n";
        }
        Some((Ok(said.into()), self))
    }
}

/// `GET /imports/{id}/live`
pub(in crate::web) async fn follow_import(
    State(state): State<WebState>,
    headers: HeaderMap,
    Id(id): Id,
    Asked(query): Asked<LiveQuery>,
) -> Result<Response, Problem> {
    let secret = cookie::read(&state, &headers).ok_or_else(Problem::not_signed_in)?;
    let reader = auth::signed_in(&state, &secret).await?.ok_or_else(Problem::not_signed_in)?;
    let import = own_import(&state, &reader.caller, &id).await?;
    let Some(seat) = state.live.seat(reader.session.as_str()) else {
        let told = "Too many pages are open at once; this one looks for changes by itself.";
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too_many_followers", "Not followed live", told)
            .after(Duration::from_secs(30)));
    };
    let follower = Follower { state, id: import.id, seen: query.after, secret, first: true, over: false, _seat: seat };
    let mut response = Body::from_stream(stream::unfold(follower, Follower::next)).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    // Some proxies collect what they pass on.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}
