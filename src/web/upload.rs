//! A file of names on its way in, by the API or from a page: read in pieces, each within a time, all within another.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, BodyDataStream, Bytes};
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::Response;
use futures::{Stream, StreamExt as _};

use super::problem::{FieldError, Problem};
use super::state::WebState;
use crate::app::bulk::{Begun, NewImport, ReceiveError, begin};
use crate::app::tokens::Caller;
use crate::model::bulk::{FileError, Format};
use crate::model::id::TenantId;

/// What is asked for with a file.
pub(super) struct Wanted {
    /// What people call it.
    pub(super) name: String,
    pub(super) format: Format,
    pub(super) dry_run: bool,
    pub(super) create_tenants: bool,
    pub(super) tenant: Option<TenantId>,
    pub(super) key: Option<String>,
}

/// Answers a request whose body is a file. What is refused, wherever in the file and also before it, is read on for a while and thrown
/// away: who closes a connection on somebody who is still sending takes the answer away with it, and a browser shows that the
/// connection broke instead of what is wrong.
pub(super) async fn to_its_end<F>(
    state: &WebState,
    request: Request,
    answer: impl FnOnce(Request) -> F + Send,
) -> Result<Response, Problem>
where
    F: Future<Output = Result<Response, Problem>> + Send,
{
    let asks_first = request.headers().contains_key(header::EXPECT);
    let (parts, body) = request.into_parts();
    let file = File::of(body);
    let answered = answer(Request::from_parts(parts, Body::from_stream(file.clone()))).await;
    let status = match &answered {
        Ok(response) => response.status(),
        Err(problem) => problem.status(),
    };
    // Whoever was too slow has had their time; whoever asks before they send has heard the answer first.
    let hears_it = status == StatusCode::REQUEST_TIMEOUT || asks_first && file.is_untouched();
    if (status.is_client_error() || status.is_server_error()) && !hears_it {
        let end = state.app.env.sleep(state.settings.api.body_timeout);
        tokio::select! {
            () = thrown_away(file, state.settings.imports.max_bytes) => {}
            () = end => {}
        }
    }
    answered
}

/// A body that two read, one after the other.
#[derive(Clone)]
struct File(Arc<Mutex<Left>>);

struct Left {
    body: BodyDataStream,
    touched: bool,
    over: bool,
}

impl File {
    fn of(body: Body) -> Self {
        File(Arc::new(Mutex::new(Left { body: body.into_data_stream(), touched: false, over: false })))
    }

    fn left(&self) -> MutexGuard<'_, Left> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_untouched(&self) -> bool {
        !self.left().touched
    }
}

impl Stream for File {
    type Item = Result<Bytes, axum::Error>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut left = self.left();
        left.touched = true;
        if left.over {
            return Poll::Ready(None);
        }
        let piece = left.body.poll_next_unpin(context);
        left.over = matches!(piece, Poll::Ready(None | Some(Err(_))));
        piece
    }
}

/// Receives a file to its end; whatever is wrong with it, nothing of it stays.
pub(super) async fn receive<E>(
    state: &WebState,
    caller: &Caller,
    actor: &str,
    wanted: Wanted,
    file: impl Stream<Item = Result<Bytes, E>> + Send,
) -> Result<Begun, Problem> {
    let limits = &state.settings.imports;
    let new = NewImport {
        name: wanted.name,
        format: wanted.format,
        dry_run: wanted.dry_run,
        create_tenants: wanted.create_tenants,
        default_tenant: wanted.tenant,
        idempotency_key: wanted.key,
        rules: state.settings.rules.clone(),
        max_rows: u64::from(limits.max_rows),
        max_bytes: limits.max_bytes,
    };
    let mut file = std::pin::pin!(file);
    let mut receiving = begin(&state.app, caller, actor, new).await?;
    let deadline = state.app.env.now() + limits.upload_timeout;
    loop {
        let left = deadline.since(state.app.env.now());
        let wait = left.min(state.settings.api.body_timeout);
        let piece = tokio::select! {
            biased;
            piece = file.next() => piece,
            () = state.app.env.sleep(wait) => {
                receiving.give_up().await;
                return Err(too_slow(wait.as_secs()));
            }
        };
        let taken = match piece {
            None => break,
            Some(Ok(piece)) => receiving.take(&piece).await,
            Some(Err(_)) => {
                receiving.give_up().await;
                return Err(cut_off());
            }
        };
        if let Err(e) = taken {
            receiving.give_up().await;
            return Err(e.into());
        }
        if left.is_zero() {
            receiving.give_up().await;
            return Err(too_slow(limits.upload_timeout.as_secs()));
        }
    }
    Ok(receiving.complete().await?)
}

/// Reads what is still sent, up to so many bytes.
async fn thrown_away(mut file: File, most: u64) {
    let mut bytes = 0_u64;
    while let Some(Ok(piece)) = file.next().await {
        bytes = bytes.saturating_add(u64::try_from(piece.len()).unwrap_or(u64::MAX));
        if bytes > most {
            break;
        }
    }
}

fn too_slow(secs: u64) -> Problem {
    let detail = format!("The file did not arrive in time ({secs} s passed). Nothing of it was imported; send it again.");
    Problem::new(StatusCode::REQUEST_TIMEOUT, "body_too_slow", "The file came too slowly", detail)
}

/// The file ended before its end.
pub(super) fn cut_off() -> Problem {
    let detail = "The file broke off before its end. Nothing of it was imported; send it again.";
    Problem::new(StatusCode::BAD_REQUEST, "body_cut_off", "The file broke off", detail)
}

impl From<ReceiveError> for Problem {
    fn from(e: ReceiveError) -> Self {
        let said = sentence(&e.to_string());
        match e {
            ReceiveError::File(e) => file(e),
            ReceiveError::TooLarge(_) => {
                Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "file_too_large", "The file is too large", said)
            }
            ReceiveError::GivenUp => Problem::refused("import_given_up", said),
            ReceiveError::TooMany(_) => Problem::refused("too_many_imports", said),
            ReceiveError::InFlight => super::once::in_flight(),
            ReceiveError::OtherFile => super::once::reused(),
            ReceiveError::App(e) => e.into(),
        }
    }
}

/// What is wrong with the file as a whole.
fn file(e: FileError) -> Problem {
    let field = e.line.map_or_else(|| "file".to_owned(), |line| format!("line {line}"));
    let title = "Nothing was imported: the file is not readable";
    let error = FieldError { field, code: e.code, detail: e.detail.clone(), suggestion: None };
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, e.code, title, e.detail).with(error)
}

/// An error's text as a sentence.
pub(super) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|c| c.to_uppercase().collect::<String>()).unwrap_or_default();
    format!("{first}{}.", letters.as_str().trim_end_matches('.'))
}
