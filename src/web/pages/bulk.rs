//! Imports for people: the list with the form that takes a file, and what may be done with one.

use std::time::Duration;

use askama::Template;
use axum::extract::multipart::{Field, Multipart, MultipartError};
use axum::extract::{DefaultBodyLimit, FromRequest as _, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use serde::Deserialize;

use super::see;
use super::when::{absolute, relative};
use crate::app::bulk::{self, Begun, turn};
use crate::app::tenants;
use crate::app::tokens::Principal;
use crate::model::bulk::{Format, ImportState};
use crate::model::id::ImportId;
use crate::model::label::Label;
use crate::model::moment::Moment;
use crate::store::bulk::{Import, ImportFilter};
use crate::web::api::bulk::own_import;
use crate::web::auth::PageCaller;
use crate::web::form;
use crate::web::input::{Asked, Form, Id};
use crate::web::links::query;
use crate::web::problem::{Problem, html};
use crate::web::state::WebState;
use crate::web::texts as t;
use crate::web::upload::{self, Wanted};
use crate::web::visible::visible;

/// Imports on a page.
const LENGTH: i64 = 25;
/// What a short field of the form may hold.
const SHORT: usize = 1024;
/// Fields that are read before the file must have come.
const MOST_FIELDS: usize = 16;

#[derive(Template)]
#[template(path = "imports.html")]
pub(super) struct ImportsPage {
    pub(super) csrf: String,
    pub(super) operator: bool,
    pub(super) tenant: String,
    pub(super) trouble: Option<String>,
    pub(super) most: u32,
    pub(super) rows: Vec<ImportLine>,
    pub(super) next: Option<String>,
}

/// One import of the list.
pub(super) struct ImportLine {
    pub(super) id: ImportId,
    pub(super) name: String,
    pub(super) tone: &'static str,
    pub(super) state: &'static str,
    pub(super) rows: i64,
    pub(super) refused: i64,
    pub(super) at: String,
    pub(super) at_full: String,
    pub(super) at_machine: String,
}

impl ImportLine {
    fn of(import: &Import, now: Moment) -> ImportLine {
        let (state, tone) = state_words(import.state, import.dry_run);
        ImportLine {
            id: import.id.clone(),
            name: visible(&import.name),
            tone,
            state,
            rows: import.rows,
            refused: import.counts.refused,
            at: relative(import.created_at, now),
            at_full: absolute(import.created_at),
            at_machine: import.created_at.rfc3339(),
        }
    }
}

/// A state as people read it, and its tone.
pub(super) fn state_words(state: ImportState, dry_run: bool) -> (&'static str, &'static str) {
    match (state, dry_run) {
        (ImportState::Receiving, _) => (t::arriving(), "wait"),
        (ImportState::Working, true) => (t::being_checked(), "wait"),
        (ImportState::Working, false) => (t::being_imported(), "wait"),
        (ImportState::Paused, _) => (t::paused(), "off"),
        (ImportState::Done, true) => (t::checked(), "good"),
        (ImportState::Done, false) => (t::imported(), "good"),
        (ImportState::Cancelled | ImportState::Broken, _) => (t::cancelled(), "off"),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct ImportsQuery {
    cursor: Option<String>,
}

/// `GET /imports`
pub(in crate::web) async fn list_imports(
    State(state): State<WebState>,
    reader: PageCaller,
    Asked(asked): Asked<ImportsQuery>,
) -> Result<Html<String>, Problem> {
    let before = match &asked.cursor {
        Some(id) => Some(id.parse().map_err(|_| Problem::no_import())?),
        None => None,
    };
    html(&page(&state, &reader, before, None, String::new()).await?)
}

async fn page(
    state: &WebState,
    reader: &PageCaller,
    before: Option<ImportId>,
    trouble: Option<String>,
    tenant: String,
) -> Result<ImportsPage, Problem> {
    let now = state.app.env.now();
    let filter = ImportFilter { before, ..ImportFilter::default() };
    let imports = bulk::list(&state.app, &reader.caller.principal, filter, LENGTH).await?;
    let full = i64::try_from(imports.len()).is_ok_and(|n| n == LENGTH);
    let last = imports.last().filter(|_| full);
    Ok(ImportsPage {
        csrf: reader.csrf.clone(),
        operator: reader.caller.principal == Principal::Operator,
        tenant,
        trouble,
        most: state.settings.imports.max_rows,
        next: last.map(|import| format!("/imports?{}", query(&[("cursor", import.id.as_str())]))),
        rows: imports.iter().map(|import| ImportLine::of(import, now)).collect(),
    })
}

/// The fields before the file, which comes last so that it need not be held.
#[derive(Default)]
struct Fields {
    csrf: String,
    tenant: String,
    /// `import`; anything else only checks.
    mode: String,
    create: bool,
}

fn bad_form(e: &MultipartError) -> Problem {
    if e.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
        let detail = "Open the page and send the file from there.";
        return Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_a_form", "The body must be a form", detail);
    }
    Problem::new(
        StatusCode::BAD_REQUEST,
        "bad_form",
        "The form is not readable",
        "The form broke off or is not readable; send it again.",
    )
}

async fn short(state: &WebState, mut field: Field<'_>) -> Result<String, Problem> {
    let mut text = Vec::new();
    while let Some(piece) = in_time(state, field.chunk()).await?.map_err(|e| bad_form(&e))? {
        text.extend_from_slice(&piece);
        if text.len() > SHORT {
            return Err(Problem::new(
                StatusCode::BAD_REQUEST,
                "bad_form",
                "The form is not readable",
                "A field of the form is too long.",
            ));
        }
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

async fn in_time<T>(state: &WebState, wait: impl Future<Output = T>) -> Result<T, Problem> {
    let timeout: Duration = state.settings.api.body_timeout;
    tokio::select! {
        biased;
        done = wait => Ok(done),
        () = state.app.env.sleep(timeout) => {
            let detail = format!("The form did not arrive within {} s. Send it again.", timeout.as_secs());
            Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "body_too_slow", "The form came too slowly", detail))
        }
    }
}

/// `POST /imports`: on to the import, or back with what is wrong with the file.
pub(in crate::web) async fn post_import(
    State(state): State<WebState>,
    reader: PageCaller,
    headers: HeaderMap,
    request: Request,
) -> Result<Response, Problem> {
    upload::to_its_end(&state, request, |request| receive(&state, &reader, &headers, request)).await
}

async fn receive(
    state: &WebState,
    reader: &PageCaller,
    headers: &HeaderMap,
    mut request: Request,
) -> Result<Response, Problem> {
    form::from_our_page(state, headers)?;
    // The file has a limit of its own, kept while it is read.
    DefaultBodyLimit::disable().apply(&mut request);
    let not_a_form = |e: axum::extract::multipart::MultipartRejection| {
        Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_a_form", "The body must be a form", e.body_text())
    };
    let mut parts = Multipart::from_request(request, &()).await.map_err(not_a_form)?;
    let mut fields = Fields::default();
    // The form has five; whoever sends more is no page of ours.
    for _ in 0..MOST_FIELDS {
        let Some(field) = in_time(state, parts.next_field()).await?.map_err(|e| bad_form(&e))? else { break };
        match field.name().unwrap_or_default() {
            "csrf" => fields.csrf = short(state, field).await?,
            "tenant" => fields.tenant = short(state, field).await?,
            "mode" => fields.mode = short(state, field).await?,
            "create" => fields.create = !short(state, field).await?.is_empty(),
            "file" => {
                form::check(state, headers, reader, &fields.csrf)?;
                return match take(state, reader, &fields, field).await {
                    Ok(path) => Ok(see(state, &path)),
                    Err(problem) if problem.is_senders() => again(state, reader, fields, problem.detail()).await,
                    Err(problem) => Err(problem),
                };
            }
            _ => {}
        }
    }
    form::check(state, headers, reader, &fields.csrf)?;
    again(state, reader, fields, t::choose_file()).await
}

async fn again(state: &WebState, reader: &PageCaller, fields: Fields, trouble: &str) -> Result<Response, Problem> {
    let page = page(state, reader, None, Some(visible(trouble)), visible(&fields.tenant)).await?;
    Ok((StatusCode::UNPROCESSABLE_ENTITY, html(&page)?).into_response())
}

/// Takes the file; where it is shown then.
async fn take(state: &WebState, reader: &PageCaller, fields: &Fields, file: Field<'_>) -> Result<String, Problem> {
    let operator = reader.caller.principal == Principal::Operator;
    let typed = file.file_name().unwrap_or_default().to_owned();
    if typed.is_empty() {
        return Err(Problem::wrong("file", "file_empty", t::choose_file()));
    }
    let name = Label::NAME.read(&typed).unwrap_or_else(|_| "names".to_owned());
    let lower = typed.to_ascii_lowercase();
    let lines = [".ndjson", ".jsonl", ".json"].iter().any(|end| lower.ends_with(end));
    let tenant = match fields.tenant.trim() {
        "" => None,
        _ if !operator => None,
        named => {
            let found = tenants::find(&state.app.store, named).await?;
            let unknown = || Problem::wrong("tenant", "tenant_unknown", t::tenant_unknown());
            Some(found.ok_or_else(unknown)?.id)
        }
    };
    let wanted = Wanted {
        name,
        format: if lines { Format::Ndjson } else { Format::Csv },
        dry_run: fields.mode != "import",
        create_tenants: operator && fields.create,
        tenant,
        key: None,
    };
    let (Begun::New(import) | Begun::Before(import)) =
        upload::receive(state, &reader.caller, &reader.actor, wanted, file).await?;
    Ok(format!("/imports/{}", import.id))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct TurnForm {
    csrf: String,
    #[serde(default)]
    to: String,
}

/// `POST /imports/{id}/turn`: pause, resume, cancel, or start a dry run.
pub(in crate::web) async fn post_turn(
    State(state): State<WebState>,
    reader: PageCaller,
    Id(id): Id,
    headers: HeaderMap,
    Form(body): Form<TurnForm>,
) -> Result<Response, Problem> {
    let import = own_import(&state, &reader.caller, &id).await?;
    form::check(&state, &headers, &reader, &body.csrf)?;
    let (app, principal) = (&state.app, &reader.caller.principal);
    let by = turn::By { principal, actor: &reader.actor };
    match body.to.as_str() {
        "pause" => turn::pause(app, by, &import.id).await?,
        "resume" => turn::resume(app, by, &import.id).await?,
        "cancel" => turn::cancel(app, by, &import.id).await?,
        "start" => turn::start(app, principal, &import.id).await?,
        _ => {
            return Err(Problem::refused("import_not_turned", "An import is paused, resumed, cancelled or started.".into()));
        }
    };
    Ok(see(&state, &format!("/imports/{}", import.id)))
}
