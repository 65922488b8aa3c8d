//! What goes wrong on the wire, around the CA's own work.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, LOCATION, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use futures::StreamExt as _;
use serde_json::Value;

use super::what::{RetryAfter, What};
use crate::sandbox::ca::entry::Endpoint;
use crate::sandbox::ca::jws::Jws;
use crate::sandbox::ca::problem::{Kind, Problem};
use crate::sandbox::ca::server::Desk;

/// The largest request or answer that is read to spoil it.
const MOST: usize = 1 << 20;
/// More than any client should read.
const HUGE: usize = 4 << 20;

/// What such a page says, with what no page of ours may ever show as it is.
const PAGE: &str = "<!DOCTYPE html>\n<html><head><title>The CA is down for maintenance</title>\
    <script>alert('run by whoever shows this')</script></head>\n<body><h1>Back soon</h1><p>Ray ID: 7d3f &amp; more</p></body></html>\n";

/// Lets a fault happen before the CA acts: what goes back instead, if anything.
pub(in crate::sandbox::ca) async fn before(
    desk: &Arc<Desk>,
    what: &What,
    endpoint: Endpoint,
    subject: Option<&str>,
    request: Request,
) -> Result<Request, Response> {
    match what {
        What::BadNonce => Err(Problem::new(Kind::BadNonce, "JWS has an invalid anti-replay nonce").into_response()),
        What::Limited { limit, retry_after } => {
            let wait = retry_after.as_ref().and_then(RetryAfter::wait).unwrap_or_else(|| limit.refills_in());
            let name = ordered_name(request).await.unwrap_or_else(|| "the name".to_owned());
            Err(told(limit.problem(&name, desk.now() + wait).into_response(), retry_after.as_ref(), desk))
        }
        What::Refused { kind, detail, status, retry_after } => {
            let problem = Problem::new(*kind, detail.clone());
            let problem = if let Some(status) = status { problem.with_status(*status) } else { problem };
            Err(told(problem.into_response(), retry_after.as_ref(), desk))
        }
        What::Page { status, retry_after } => {
            let status = StatusCode::from_u16(*status).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
            Err(told(page(status), retry_after.as_ref(), desk))
        }
        What::Redirect { to } => {
            let mut response = StatusCode::TEMPORARY_REDIRECT.into_response();
            if let Ok(to) = HeaderValue::from_str(to) {
                response.headers_mut().insert(LOCATION, to);
            }
            Err(response)
        }
        What::Slow { seconds } => {
            desk.script().hold();
            desk.sleep(Duration::from_secs(*seconds)).await;
            Ok(request)
        }
        What::Frozen => {
            desk.script().hold();
            std::future::pending().await
        }
        What::DropBefore => Err(broken()),
        What::Books(twist) => {
            desk.state().twist(twist, endpoint, subject, desk.now());
            Ok(request)
        }
        What::DropAfter
        | What::FrozenAfter
        | What::CutShort
        | What::HalfDocument
        | What::Huge
        | What::Garbled
        | What::NoNonce
        | What::Altered { .. } => Ok(request),
    }
}

/// Spoils the answer of a CA that acted.
pub(in crate::sandbox::ca) async fn after(desk: &Arc<Desk>, what: &What, answer: Response) -> Response {
    match what {
        What::DropAfter => broken(),
        What::FrozenAfter => {
            desk.script().hold();
            std::future::pending().await
        }
        What::CutShort => {
            reworked(answer, |body| {
                let half = body.slice(..body.len() / 2);
                let start = futures::stream::once(async move { Ok(half) });
                let end = futures::stream::once(async {
                    // So that the first half is on its way before the line breaks.
                    for _ in 0..8 {
                        tokio::task::yield_now().await;
                    }
                    Err(io::Error::other("cut short by a scripted fault"))
                });
                Body::from_stream(start.chain(end))
            })
            .await
        }
        What::HalfDocument => reworked(answer, |body| Body::from(body.slice(..body.len() / 2))).await,
        What::Huge => {
            reworked(answer, |body| {
                let mut all = body.to_vec();
                all.resize(all.len() + HUGE, b' ');
                Body::from(all)
            })
            .await
        }
        What::Garbled => {
            let mut answer = reworked(answer, |_| Body::from(PAGE)).await;
            answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html"));
            answer
        }
        What::Altered { member, value } => {
            reworked(answer, |body| {
                let Ok(Value::Object(mut document)) = serde_json::from_slice(&body) else { return Body::from(body) };
                match value {
                    Some(value) => document.insert(member.clone(), value.clone()),
                    None => document.remove(member),
                };
                Body::from(Value::Object(document).to_string())
            })
            .await
        }
        _ => answer,
    }
}

fn told(mut response: Response, retry_after: Option<&RetryAfter>, desk: &Desk) -> Response {
    if let Some(value) = retry_after.and_then(|r| r.value(desk.now())) {
        response.headers_mut().insert(RETRY_AFTER, value);
    }
    response
}

fn page(status: StatusCode) -> Response {
    (status, [(CONTENT_TYPE, "text/html")], PAGE).into_response()
}

/// The first name of an order in a request that the CA will not act upon.
async fn ordered_name(request: Request) -> Option<String> {
    let body = to_bytes(request.into_body(), MOST).await.ok()?;
    let order: Value = serde_json::from_slice(&Jws::parse(&body).ok()?.payload).ok()?;
    Some(order.get("identifiers")?.get(0)?.get("value")?.as_str()?.to_owned())
}

async fn reworked(answer: Response, work: impl FnOnce(Bytes) -> Body) -> Response {
    let (mut parts, body) = answer.into_parts();
    // Answers of this CA are short and in memory.
    let body = to_bytes(body, MOST).await.unwrap_or_default();
    parts.headers.remove(CONTENT_LENGTH);
    Response::from_parts(parts, work(body))
}

/// An answer whose body fails before its first byte: hyper closes the connection without having sent the head.
fn broken() -> Response {
    let failing = futures::stream::once(async { Err::<String, _>(io::Error::other("dropped by a scripted fault")) });
    Response::new(Body::from_stream(failing))
}
