//! Pages that are told of changes, by server-sent events: `changed` says that what the page shows may have moved, `over` that
//! the page will be told nothing more.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::stream;
use serde::Deserialize;

use super::hand_off;
use crate::app::sessions::SignedIn;
use crate::app::tokens::Principal;
use crate::model::secret::Secret;
use crate::store::views::EventFilter;
use crate::telemetry::Chain;
use crate::web::api::domains::own_domain;
use crate::web::auth;
use crate::web::cookie;
use crate::web::input::{Asked, Id, LinkText};
use crate::web::live::{News, Place};
use crate::web::problem::Problem;
use crate::web::state::WebState;

/// A comment so often keeps proxies from taking silence for the end, and asks whether the reader may still read.
const HEARTBEAT: Duration = Duration::from_secs(20);
/// How long browsers wait before they come back.
const RETRY: &str = "retry: 5000\n\n";
const CHANGED: &str = "event: changed\ndata: {}\n\n";
const OVER: &str = "event: over\ndata: {}\n\n";

#[derive(Deserialize)]
pub(in crate::web) struct LiveQuery {
    /// How far the stream had come when the page was made.
    #[serde(default)]
    after: i64,
}

/// What a reader's right to be told rests on.
enum Right {
    Session(Secret),
    Link(Secret),
}

impl Right {
    /// Whether it holds; while the store cannot be asked it does, for nothing is told then either.
    async fn holds(&self, state: &WebState) -> bool {
        let held = match self {
            Right::Session(secret) => auth::signed_in(state, secret).await.map(|reader| reader.is_some()),
            Right::Link(text) => hand_off::find(state, text).await.map(|found| found.is_ok()),
        };
        held.unwrap_or(true)
    }
}

struct Follower {
    state: WebState,
    place: Place,
    right: Right,
    /// What is said before anything is waited for.
    first: Option<String>,
    over: bool,
}

impl Follower {
    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, Self)> {
        if self.over {
            return None;
        }
        if let Some(first) = self.first.take() {
            return Some((Ok(first.into()), self));
        }
        let said = tokio::select! {
            news = self.place.next() => match news {
                News::Moved => CHANGED,
                News::Closed => {
                    self.over = true;
                    // Without a word: the browser comes back, to the process that takes over.
                    return None;
                }
            },
            () = self.state.app.env.sleep(HEARTBEAT) => ": still here\n\n",
        };
        if !self.right.holds(&self.state).await {
            self.over = true;
            return Some((Ok(OVER.into()), self));
        }
        Some((Ok(said.into()), self))
    }
}

async fn follow(state: WebState, who: &str, wanted: EventFilter, right: Right) -> Result<Response, Problem> {
    let waits = state.live.wait(who, wanted).await.inspect_err(|error| {
        tracing::debug!(error = %Chain(error), "a page could not be followed");
    })?;
    let Some((place, missed)) = waits else {
        let told = "Too many pages are open at once; this one looks for changes by itself.";
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too_many_followers", "Not followed live", told)
            .after(Duration::from_secs(30)));
    };
    let first = format!("{RETRY}{}", if missed { CHANGED } else { "" });
    let follower = Follower { state, place, right, first: Some(first), over: false };
    let mut response = Body::from_stream(stream::unfold(follower, Follower::next)).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    // Some proxies collect what they pass on.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// Who follows. That a page is open somewhere is no use of its session, which may end meanwhile.
async fn reader(state: &WebState, headers: &HeaderMap) -> Result<(SignedIn, Right), Problem> {
    let secret = cookie::read(state, headers).ok_or_else(Problem::not_signed_in)?;
    let signed_in = auth::signed_in(state, &secret).await?.ok_or_else(Problem::not_signed_in)?;
    Ok((signed_in, Right::Session(secret)))
}

/// `GET /domains/{id}/live`
pub(in crate::web) async fn follow_domain(
    State(state): State<WebState>,
    headers: HeaderMap,
    Id(id): Id,
    Asked(query): Asked<LiveQuery>,
) -> Result<Response, Problem> {
    let (reader, right) = reader(&state, &headers).await?;
    let id = own_domain(&state, &reader.caller, &id).await?;
    let wanted = EventFilter { domain: Some(id), after: query.after, ..EventFilter::default() };
    follow(state, reader.session.as_str(), wanted, right).await
}

/// `GET /domains/live`: everything that a tenant's list shows.
pub(in crate::web) async fn follow_list(
    State(state): State<WebState>,
    headers: HeaderMap,
    Asked(query): Asked<LiveQuery>,
) -> Result<Response, Problem> {
    let (reader, right) = reader(&state, &headers).await?;
    let Principal::Tenant(own) = reader.caller.principal else { return Err(Problem::no_route()) };
    let wanted = EventFilter { tenant: Some(own), after: query.after, ..EventFilter::default() };
    follow(state, reader.session.as_str(), wanted, right).await
}

/// `GET /hand-off/{token}/live`
pub(in crate::web) async fn follow_hand_off(
    State(state): State<WebState>,
    LinkText(text): LinkText,
    Asked(query): Asked<LiveQuery>,
) -> Result<Response, Problem> {
    let gone = || Problem::new(StatusCode::GONE, "link_over", "This link has ended", "It shows nothing any more.");
    let found = hand_off::find(&state, &text).await?.map_err(|_| gone())?;
    let domain = found.row.domain_id.ok_or_else(gone)?;
    let wanted = EventFilter { domain: Some(domain), after: query.after, ..EventFilter::default() };
    follow(state, found.row.id.as_str(), wanted, Right::Link(text)).await
}
