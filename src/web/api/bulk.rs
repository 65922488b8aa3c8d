//! Bulk imports: send a file of names, follow it, hold it, take its verdicts and records away.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::domains::{tenant_of, whose};
use super::{Page, cursor, is_full, next_page, page_length};
use crate::app::bulk::turn::{self, By, TurnError};
use crate::app::bulk::{self, Begun};
use crate::app::show::{self, ImportView, words};
use crate::app::tokens::{Caller, Principal};
use crate::model::bulk::{Format, ImportState};
use crate::model::id::ImportId;
use crate::model::vocabulary::UnknownWord;
use crate::store::bulk::{Import, ImportFilter};
use crate::web::auth::ApiCaller;
use crate::web::freshness::Version;
use crate::web::input::{Asked, Id, NoQuery};
use crate::web::once;
use crate::web::problem::Problem;
use crate::web::state::WebState;
use crate::web::upload::{Wanted, receive, sentence, to_its_end};

/// An import, with where people see it and where its files are.
#[derive(Serialize, ToSchema)]
#[schema(as = ImportWithLinks)]
pub(in crate::web) struct ImportBody {
    #[serde(flatten)]
    view: ImportView,
    /// The page that shows it to people.
    #[schema(format = "uri")]
    page: String,
    /// Its rows with their verdicts, as a file: `?format=csv` or `ndjson`.
    #[schema(format = "uri")]
    results: String,
    /// The DNS records of its claims, as a file: `?format=zone` or `csv`.
    #[schema(format = "uri")]
    records: String,
}

impl ImportBody {
    async fn of(state: &WebState, import: Import) -> Result<Self, Problem> {
        Ok(ImportBody::with_links(state, show::import(&mut state.app.store.read().await?, import).await?))
    }

    fn with_links(state: &WebState, view: ImportView) -> Self {
        let (page, api) = (state.import_page(&view.id), state.api_import(&view.id));
        ImportBody { view, page, results: format!("{api}/results"), records: format!("{api}/records") }
    }

    fn answer(self, status: StatusCode) -> Response {
        (status, Version(self.view.version), axum::Json(self)).into_response()
    }
}

/// The id, if it is of an import that the caller may know of; else the same answer as for one that is not.
pub(in crate::web) async fn own_import(state: &WebState, caller: &Caller, id: &str) -> Result<Import, Problem> {
    let id: ImportId = id.parse().map_err(|_| Problem::no_import())?;
    let found = bulk::find(&mut state.app.store.read().await?, &caller.principal, &id).await?;
    found.ok_or_else(Problem::no_import)
}

/// How a file is to be taken.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::web) struct ImportQuery {
    /// Whose the rows are that name no tenant, by id or slug.
    #[param(example = "acme")]
    tenant: Option<String>,
    /// What people call it.
    #[param(max_length = 200)]
    name: Option<String>,
    /// Claim nothing: only tell what would become of each row, and how long it would take.
    #[param(default = false)]
    dry_run: Option<bool>,
    /// Add tenants that rows name and that are not there; for operators.
    #[param(default = false)]
    create_tenants: Option<bool>,
}

/// How a body is written, by what it is said to be.
fn format_of(headers: &HeaderMap) -> Result<Format, Problem> {
    let said = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut parts = said.split(';').map(|part| part.trim().to_ascii_lowercase());
    let kind = parts.next().unwrap_or_default();
    let charset = parts.find_map(|part| part.strip_prefix("charset=").map(|set| set.trim_matches('"').to_owned()));
    if charset.is_some_and(|set| !matches!(set.as_str(), "utf-8" | "utf8" | "us-ascii")) {
        let detail = "The file must be UTF-8; convert it and send it again.";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_a_list", "The file must be UTF-8", detail));
    }
    match kind.as_str() {
        "text/csv" | "application/csv" | "text/tab-separated-values" => Ok(Format::Csv),
        "application/x-ndjson" | "application/ndjson" | "application/jsonl" | "application/x-jsonlines" => {
            Ok(Format::Ndjson)
        }
        _ => {
            let detail =
                "Send the names as CSV with Content-Type: text/csv, or one JSON object a line with application/x-ndjson.";
            Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_a_list", "The body must be CSV or NDJSON", detail))
        }
    }
}

/// Import a file of names
///
/// The body is the file: CSV with a header (`hostname`, `tenant`, `method`; commas, semicolons or tabs), or one JSON object a
/// line with the same fields. It is read as it arrives, and counts once it is whole: what breaks off leaves nothing. Rows then get
/// their verdicts one after the other; one that cannot be taken never stops another, and a row sent twice does no harm.
#[utoipa::path(post, path = "/api/v1/imports", tag = "Imports", operation_id = "createImport", params(ImportQuery),
    request_body(content((String = "text/csv", example = "hostname,tenant\nsupport.acme.com,acme\n"), (String = "application/x-ndjson"))),
    responses(
        (status = 200, description = "The import that this key stands for already.", body = ImportBody, headers(("Location" = String, description = "Where it is."))),
        (status = 201, description = "The import; its rows get their verdicts now.", body = ImportBody, headers(("Location" = String, description = "Where it is."))),
        (status = 400, description = "`bad_query`, `body_cut_off`, `idempotency_key_invalid`"),
        (status = 403, description = "`operator_needed`"),
        (status = 409, description = "`too_many_imports`, `import_given_up`, `idempotency_in_flight`"),
        (status = 413, description = "`file_too_large`"),
        (status = 415, description = "`not_a_list`"),
        (status = 422, description = "`file_empty`, `file_not_utf8`, `header_missing`, `column_refused`, `column_unknown`, `column_repeated`, `not_ndjson`, `too_many_rows`, `name_length`, `name_unseen_character`, `tenant_unknown`, `idempotency_key_reused`"),
    ))]
pub(in crate::web) async fn create_import(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    query: Result<Asked<ImportQuery>, Problem>,
    request: Request,
) -> Result<Response, Problem> {
    to_its_end(&state, request, |request| take(&state, &caller, query, request)).await
}

async fn take(
    state: &WebState,
    caller: &Caller,
    query: Result<Asked<ImportQuery>, Problem>,
    request: Request,
) -> Result<Response, Problem> {
    let Asked(query) = query?;
    let (parts, body) = request.into_parts();
    let format = format_of(&parts.headers)?;
    let key = once::key_of(&parts.headers)?;
    let tenant = match &query.tenant {
        Some(named) => Some(tenant_of(state, caller, Some(named), "tenant").await?),
        None => None,
    };
    let create_tenants = query.create_tenants.unwrap_or(false);
    if create_tenants && caller.principal != Principal::Operator {
        return Err(Problem::operators_only());
    }
    let name = match &query.name {
        Some(name) => crate::model::label::Label::NAME.read(name).map_err(|e| Problem::label("name", &e))?,
        None => format!("names.{format}"),
    };
    let dry_run = query.dry_run.unwrap_or(false);
    let wanted = Wanted { name, format, dry_run, create_tenants, tenant, key };
    let begun = receive(state, caller, &caller.actor(), wanted, body.into_data_stream()).await?;
    let (import, status) = match begun {
        Begun::New(import) => (import, StatusCode::CREATED),
        Begun::Before(import) => (import, StatusCode::OK),
    };
    let location = state.api_import(&import.id);
    let mut response = ImportBody::of(state, import).await?.answer(status);
    if let Ok(value) = HeaderValue::from_str(&location) {
        response.headers_mut().insert(header::LOCATION, value);
    }
    if status == StatusCode::OK {
        response.headers_mut().insert(once::REPLAYED, HeaderValue::from_static("true"));
    }
    Ok(response)
}

/// What narrows the list of imports.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::web) struct ImportsQuery {
    /// Of one tenant only, by id or slug; an operator's own belong to none.
    #[param(example = "acme")]
    tenant: Option<String>,
    /// Of a file with this SHA-256 only.
    #[param(pattern = "^[0-9a-f]{64}$")]
    digest: Option<String>,
    /// In this state only.
    #[param(schema_with = words::import_state)]
    state: Option<String>,
    /// From the `next` of the page before.
    #[param(pattern = "^[A-Za-z0-9_-]+$")]
    cursor: Option<String>,
    /// How many items a page holds.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
}

/// List imports
///
/// The newest first; a tenant's token lists those that were sent in its name.
#[utoipa::path(get, path = "/api/v1/imports", tag = "Imports", operation_id = "listImports", params(ImportsQuery),
    responses(
        (status = 200, description = "A page of imports.", body = Page<ImportBody>),
        (status = 422, description = "`tenant_unknown`, `digest_invalid`, `state_invalid`, `limit_out_of_range`, `cursor_invalid`"),
    ))]
pub(in crate::web) async fn list_imports(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Asked(query): Asked<ImportsQuery>,
) -> Result<impl IntoResponse, Problem> {
    let limit = page_length(query.limit)?;
    let tenant = whose(&state, &caller, query.tenant.as_deref()).await?;
    let word = |text: &String| text.parse::<ImportState>();
    let wrong = |e: UnknownWord| Problem::wrong("state", "state_invalid", sentence(&e.to_string()));
    let wanted = query.state.as_ref().map(word).transpose().map_err(wrong)?;
    let is_digest = |text: &String| text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if query.digest.as_ref().is_some_and(|text| !is_digest(text)) {
        let detail = "A digest is the SHA-256 of a file: 64 small hexadecimal digits.";
        return Err(Problem::wrong("digest", "digest_invalid", detail));
    }
    let before = cursor(query.cursor.as_deref())?;
    let filter = ImportFilter { tenant, digest: query.digest.clone(), state: wanted, before };
    let imports = bulk::list(&state.app, &caller.principal, filter, limit).await?;
    let (full, last) = (is_full(&imports, limit), imports.last().map(|last| last.id.to_string()));
    let question =
        [("tenant", query.tenant), ("digest", query.digest), ("state", query.state), ("limit", Some(limit.to_string()))];
    let next = next_page(&state, "/api/v1/imports", full, last, &question);
    let views = show::imports(&mut state.app.store.read().await?, imports).await?;
    let items = views.into_iter().map(|view| ImportBody::with_links(&state, view)).collect();
    Ok(axum::Json(Page { items, next }))
}

/// Show an import
///
/// How far it is, what the limits make of it, and where its claims stand.
#[utoipa::path(get, path = "/api/v1/imports/{id}", tag = "Imports", operation_id = "getImport",
    params(("id" = String, Path, description = "Id of the import")),
    responses(
        (status = 200, description = "The import.", body = ImportBody),
        (status = 404, description = "`import_not_found`"),
    ))]
pub(in crate::web) async fn get_import(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Id(id): Id,
    _: NoQuery,
) -> Result<Response, Problem> {
    let import = own_import(&state, &caller, &id).await?;
    Ok(ImportBody::of(&state, import).await?.answer(StatusCode::OK))
}

impl From<TurnError> for Problem {
    fn from(e: TurnError) -> Self {
        match e {
            TurnError::NotFound(_) => Problem::no_import(),
            TurnError::Refused { .. } => Problem::refused("import_not_turned", sentence(&e.to_string())),
            TurnError::App(e) => e.into(),
        }
    }
}

/// An id of the path as one of ours.
fn id_of(id: &str) -> Result<ImportId, Problem> {
    id.parse().map_err(|_| Problem::no_import())
}

fn by<'a>(caller: &'a Caller, actor: &'a str) -> By<'a> {
    By { principal: &caller.principal, actor }
}

/// Pause an import
///
/// No more rows get their verdict until it is resumed, and nothing is ordered for those of its claims that wait for their turn. What
/// the certificate authority knows of goes its way.
#[utoipa::path(post, path = "/api/v1/imports/{id}/pause", tag = "Imports", operation_id = "pauseImport",
    params(("id" = String, Path, description = "Id of the import")),
    responses(
        (status = 200, description = "The import, paused.", body = ImportBody),
        (status = 404, description = "`import_not_found`"),
        (status = 409, description = "`import_not_turned`"),
    ))]
pub(in crate::web) async fn pause_import(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Id(id): Id,
    _: NoQuery,
) -> Result<Response, Problem> {
    let import = turn::pause(&state.app, by(&caller, &caller.actor()), &id_of(&id)?).await?;
    Ok(ImportBody::of(&state, import).await?.answer(StatusCode::OK))
}

/// Resume an import
///
/// It goes on with the row at which it was paused. Claims that waited for their turn are looked at once more first.
#[utoipa::path(post, path = "/api/v1/imports/{id}/resume", tag = "Imports", operation_id = "resumeImport",
    params(("id" = String, Path, description = "Id of the import")),
    responses(
        (status = 200, description = "The import, going on.", body = ImportBody),
        (status = 404, description = "`import_not_found`"),
        (status = 409, description = "`import_not_turned`"),
    ))]
pub(in crate::web) async fn resume_import(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Id(id): Id,
    _: NoQuery,
) -> Result<Response, Problem> {
    let import = turn::resume(&state.app, by(&caller, &caller.actor()), &id_of(&id)?).await?;
    Ok(ImportBody::of(&state, import).await?.answer(StatusCode::OK))
}

/// Cancel an import
///
/// Rows without a verdict get none any more, and nothing is ordered for claims that wait for their turn. Claims that were made stay:
/// each can be removed by itself, or claimed by itself, which takes it out of the import.
#[utoipa::path(post, path = "/api/v1/imports/{id}/cancel", tag = "Imports", operation_id = "cancelImport",
    params(("id" = String, Path, description = "Id of the import")),
    responses(
        (status = 200, description = "The import, cancelled.", body = ImportBody),
        (status = 404, description = "`import_not_found`"),
        (status = 409, description = "`import_not_turned`"),
    ))]
pub(in crate::web) async fn cancel_import(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Id(id): Id,
    _: NoQuery,
) -> Result<Response, Problem> {
    let import = turn::cancel(&state.app, by(&caller, &caller.actor()), &id_of(&id)?).await?;
    Ok(ImportBody::of(&state, import).await?.answer(StatusCode::OK))
}

/// Make a dry run come true
///
/// The rows that were checked are judged once more, as things stand now, and claimed. The file need not be sent again.
#[utoipa::path(post, path = "/api/v1/imports/{id}/start", tag = "Imports", operation_id = "startImport",
    params(("id" = String, Path, description = "Id of a dry run that is done")),
    responses(
        (status = 200, description = "The import, no dry run any more.", body = ImportBody),
        (status = 404, description = "`import_not_found`"),
        (status = 409, description = "`import_not_turned`"),
    ))]
pub(in crate::web) async fn start_import(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Id(id): Id,
    _: NoQuery,
) -> Result<Response, Problem> {
    let import = turn::start(&state.app, &caller.principal, &id_of(&id)?).await?;
    Ok(ImportBody::of(&state, import).await?.answer(StatusCode::OK))
}
