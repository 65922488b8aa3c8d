//! The publisher's paths. All but enrolment ask for an edge's credential; a revoked edge hears 401 and nothing else.

use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequestParts, Path, Query, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::answers;
use crate::feed::distribution;
use crate::feed::identity::{Feed, FeedError};
use crate::feed::member::CREDENTIAL_MARK;
use crate::feed::wire::{Ack, Acked, Enrol, Enrolled, Exception, Keys, Message, Recollected, Recollection};
use crate::mint;
use crate::model::feed::Position;
use crate::model::id::EdgeId;
use crate::store::edges::{EdgeRow, EdgeStatus, NotServed};
use crate::store::feed::position;
use crate::store::{StoreError, edges, restore};

/// How long a reader is kept waiting for a change at most, whatever it asks.
const LONGEST_WAIT: Duration = Duration::from_secs(20);
/// How often the store is asked for what another process numbered.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Bytes of a request's body. An acknowledgement lists exceptions, and there may be many on a bad day.
const BODY: usize = 256 * 1024;
/// Characters of an edge's name.
const NAME: usize = 64;

#[derive(Clone)]
struct Publisher {
    feed: Feed,
    stop: CancellationToken,
}

pub(super) fn router(feed: Feed, stop: CancellationToken) -> Router {
    Router::new()
        .route("/feed/v1/enrol", post(enrol))
        .route("/feed/v1/changes", get(changes))
        .route("/feed/v1/snapshot", get(snapshot))
        .route("/feed/v1/ack", post(ack))
        .route("/feed/v1/recollection", post(recollection))
        .route("/feed/v1/challenge/{token}", get(challenge))
        .route("/feed/v1/keys", get(keys))
        .layer(DefaultBodyLimit::max(BODY))
        .with_state(Publisher { feed, stop })
}

/// Why a reader was refused; the body is one sentence for the edge's log.
enum Refused {
    BadRequest(&'static str),
    Unauthorized(&'static str),
    Conflict(&'static str),
    Broken(FeedError),
}

impl<E: Into<FeedError>> From<E> for Refused {
    fn from(error: E) -> Self {
        Refused::Broken(error.into())
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let (status, said) = match self {
            Refused::BadRequest(said) => (StatusCode::BAD_REQUEST, said),
            Refused::Unauthorized(said) => (StatusCode::UNAUTHORIZED, said),
            Refused::Conflict(said) => (StatusCode::CONFLICT, said),
            Refused::Broken(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "the feed could not answer an edge");
                let said = match error {
                    FeedError::Behind { .. } => {
                        "the control plane's database is an older copy than this edge's; keep serving until it says so itself"
                    }
                    _ => "the control plane cannot answer now; try again",
                };
                (StatusCode::SERVICE_UNAVAILABLE, said)
            }
        };
        (status, said).into_response()
    }
}

/// The edge whose credential the request carries.
struct Reader(EdgeRow);

impl FromRequestParts<Publisher> for Reader {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &Publisher) -> Result<Self, Refused> {
        const WHO: Refused = Refused::Unauthorized("no edge has this credential, or it was revoked: enrol again");
        let bearer = parts.headers.get(header::AUTHORIZATION).and_then(|v| v.to_str().ok());
        let credential = bearer.and_then(|b| b.strip_prefix("Bearer ")).and_then(|c| c.strip_prefix(CREDENTIAL_MARK));
        let credential = credential.and_then(|c| URL_SAFE_NO_PAD.decode(c).ok()).ok_or(WHO)?;
        let mut tx = state.feed.store().read().await?;
        match edges::by_credential(&mut tx, digest(&SHA256, &credential).as_ref()).await? {
            Some(edge) if edge.status != EdgeStatus::Revoked => Ok(Reader(edge)),
            _ => Err(WHO),
        }
    }
}

fn signed(feed: &Feed, message: &Message) -> Result<Response, Refused> {
    let body = answers::signed(feed, message)?;
    Ok(([(header::CONTENT_TYPE, "application/vnd.nameplate.feed")], body).into_response())
}

fn json<T: for<'de> Deserialize<'de>>(body: &Bytes) -> Result<T, Refused> {
    serde_json::from_slice(body).map_err(|_| Refused::BadRequest("the body is not of the shape this path takes"))
}

fn json_answer(value: &impl serde::Serialize) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], serde_json::json!(value).to_string()).into_response()
}

async fn enrol(State(publisher): State<Publisher>, body: Bytes) -> Result<Response, Refused> {
    const TOKEN: Refused = Refused::Unauthorized("the join token is unknown, used up or expired: mint another");
    let Publisher { feed, .. } = publisher;
    let asked: Enrol = json(&body)?;
    let bytes = |text: &str| -> Result<[u8; 32], Refused> {
        let decoded = URL_SAFE_NO_PAD.decode(text).ok().and_then(|b| b.try_into().ok());
        decoded.ok_or(Refused::BadRequest("a key is not 32 bytes of base64url"))
    };
    let (secret, public, credential) = (bytes(&asked.token)?, bytes(&asked.public_key)?, bytes(&asked.credential_digest)?);
    if asked.name.is_empty() || asked.name.len() > NAME || asked.name.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(Refused::BadRequest("an edge's name is 1 to 64 characters without spaces"));
    }
    let now = feed.env().now();
    let mut tx = feed.store().begin().await?;
    if let Some(edge) = edges::by_credential(&mut tx, &credential).await?
        && edge.public_key == public
        && edge.status != EdgeStatus::Revoked
    {
        // The same edge asking again: its first answer was lost.
        return Ok(json_answer(&Enrolled { edge_id: edge.id }));
    }
    if tx.execute(edges::spend_join_token(digest(&SHA256, &secret).as_ref(), now)).await? == 0 {
        return Err(TOKEN);
    }
    let id = mint!(feed.env(), EdgeId);
    match tx.execute(edges::insert(&id, &asked.name, &public, &credential, now)).await {
        Ok(_) => {}
        Err(StoreError::Conflict { .. }) => {
            return Err(Refused::Conflict(
                "an edge of this name exists: give this one another name; the token is still good",
            ));
        }
        Err(error) => return Err(error.into()),
    }
    tx.commit().await?;
    tracing::info!(edge = %id, name = %asked.name.escape_debug(), "an edge enrolled");
    Ok(json_answer(&Enrolled { edge_id: id }))
}

#[derive(Deserialize)]
struct After {
    epoch: i64,
    after: i64,
    /// Milliseconds the reader is willing to wait.
    wait: u64,
}

async fn changes(_: Reader, State(publisher): State<Publisher>, Query(asked): Query<After>) -> Result<Response, Refused> {
    let Publisher { feed, stop } = publisher;
    let after = Position { epoch: asked.epoch, seq: asked.after };
    let until = feed.env().now() + Duration::from_millis(asked.wait).min(LONGEST_WAIT);
    let mut numbered = feed.bell().listen();
    loop {
        // Marked before looking: a number given in between is seen by the next look.
        numbered.borrow_and_update();
        if let Some(message) = answers::changes(&feed, after).await? {
            return signed(&feed, &message);
        }
        let left = until.since(feed.env().now());
        if left.is_zero() || stop.is_cancelled() {
            return signed(&feed, &Message::Deltas(answers::nothing_after(after)));
        }
        tokio::select! {
            _ = numbered.changed() => {}
            () = stop.cancelled() => {}
            () = feed.env().sleep(left.min(LOOK_EVERY)) => {}
        }
    }
}

async fn snapshot(_: Reader, State(publisher): State<Publisher>) -> Result<Response, Refused> {
    signed(&publisher.feed, &answers::snapshot(&publisher.feed).await?)
}

async fn ack(Reader(edge): Reader, State(publisher): State<Publisher>, body: Bytes) -> Result<Response, Refused> {
    let feed = publisher.feed;
    let asked: Ack = json(&body)?;
    let mut tx = feed.store().begin().await?;
    // An edge that has nothing yet is heard of, and has nothing.
    let cursor = asked.position.unwrap_or(Position { epoch: 0, seq: 0 });
    if let Err(ahead) = answers::not_ahead(cursor, position(&mut tx).await?) {
        // Written down for those who look for the reason, and no heartbeat: it does not count as having what is numbered now.
        tx.execute(edges::note_cursor(&edge.id, cursor)).await?;
        tx.commit().await?;
        return Err(ahead.into());
    }
    let not_served = |e: Exception| NotServed { serial: e.served(), certificate: e.certificate_id, observed: e.observed };
    let exceptions: Vec<_> = asked.exceptions.into_iter().map(not_served).collect();
    let lost = edges::ack(&mut tx, &edge.id, cursor, &exceptions, feed.env().now()).await?;
    tx.commit().await?;
    Ok(json_answer(&Acked { lost }))
}

/// Takes what an edge remembers, while this database recovers; at any other time it knows better.
async fn recollection(Reader(edge): Reader, State(publisher): State<Publisher>, body: Bytes) -> Result<Response, Refused> {
    let feed = publisher.feed;
    let asked: Recollection = json(&body)?;
    let mut tx = feed.store().begin().await?;
    let mut news = 0;
    if restore::recovering_since(&mut tx).await?.is_some() {
        for remembered in &asked.hosts {
            news += tx.execute(restore::recollect(&edge.id, remembered, feed.env().now())).await?;
        }
    }
    tx.commit().await?;
    Ok(json_answer(&Recollected { news }))
}

async fn challenge(_: Reader, State(publisher): State<Publisher>, Path(token): Path<String>) -> Result<Response, Refused> {
    signed(&publisher.feed, &answers::challenge(&publisher.feed, &token).await?)
}

async fn keys(Reader(edge): Reader, State(publisher): State<Publisher>) -> Result<Response, Refused> {
    let feed = publisher.feed;
    let public = <[u8; 32]>::try_from(edge.public_key).map_err(|_| StoreError::not_found("a usable key of this edge"))?;
    let mut tx = feed.store().read().await?;
    let mut wrapped = Vec::new();
    for key in distribution::all(&feed, &mut tx).await? {
        wrapped.push(STANDARD.encode(key.wrap_for(feed.env(), &public)?.as_bytes()));
    }
    Ok(json_answer(&Keys { wrapped }))
}
