//! What people take away from an import: its rows a page at a time, and as files.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::IntoParams;

use super::bulk::own_import;
use super::domains::whose;
use super::{Page, cursor, page, page_length};
use crate::app::AppError;
use crate::app::bulk::files::{self, RecordsAs};
use crate::app::show::{ImportRowView, words};
use crate::app::tokens::Caller;
use crate::model::bulk::{Format, Verdict};
use crate::model::vocabulary::UnknownWord;
use crate::store::bulk_rows;
use crate::web::auth::ApiCaller;
use crate::web::download;
use crate::web::input::{Asked, Id};
use crate::web::problem::Problem;
use crate::web::state::WebState;
use crate::web::upload::sentence;

fn verdict(asked: Option<&str>) -> Result<Option<Verdict>, Problem> {
    let wrong = |e: UnknownWord| Problem::wrong("verdict", "verdict_invalid", sentence(&e.to_string()));
    asked.map(str::parse).transpose().map_err(wrong)
}

fn wrong_format(one: &str, other: &str) -> Problem {
    Problem::wrong("format", "format_invalid", format!("The format is {one} or {other}."))
}

/// Which rows are wanted.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::web) struct RowsQuery {
    /// With this verdict only.
    #[param(schema_with = words::row_verdict)]
    verdict: Option<String>,
    /// From the `next` of the page before.
    #[param(pattern = "^[A-Za-z0-9_-]+$")]
    cursor: Option<String>,
    /// How many items a page holds.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
}

/// List the rows of an import
///
/// In the order of the file, each with its verdict and, where it was not taken, why.
#[utoipa::path(get, path = "/api/v1/imports/{id}/rows", tag = "Imports", operation_id = "listImportRows",
    params(("id" = String, Path, description = "Id of the import"), RowsQuery),
    responses(
        (status = 200, description = "A page of rows.", body = Page<ImportRowView>),
        (status = 404, description = "`import_not_found`"),
        (status = 422, description = "`verdict_invalid`, `limit_out_of_range`, `cursor_invalid`"),
    ))]
pub(in crate::web) async fn list_import_rows(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Id(id): Id,
    Asked(query): Asked<RowsQuery>,
) -> Result<impl IntoResponse, Problem> {
    let import = own_import(&state, &caller, &id).await?;
    let limit = page_length(query.limit)?;
    let after: Option<i64> = cursor(query.cursor.as_deref())?;
    let wanted = verdict(query.verdict.as_deref())?;
    let rows = bulk_rows::page(&state.app.store, &import.id, wanted, after.unwrap_or(0), limit).await?;
    let (path, asked) = (format!("/api/v1/imports/{}/rows", import.id), [("verdict", query.verdict)]);
    Ok(axum::Json(page((&state, &path), (rows, limit), |row| row.n.to_string(), &asked, ImportRowView::from)))
}

/// How the result file is wanted.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::web) struct ResultsQuery {
    /// `csv`, whose cells no spreadsheet executes, or `ndjson`.
    #[param(schema_with = words::import_format)]
    format: Option<String>,
    /// Of rows with this verdict only.
    #[param(schema_with = words::row_verdict)]
    verdict: Option<String>,
}

/// Download the verdicts of an import
///
/// Every row with its verdict, in the order of the file. Corrected, the file can be sent as an import again.
#[utoipa::path(get, path = "/api/v1/imports/{id}/results", tag = "Imports", operation_id = "getImportResults",
    params(("id" = String, Path, description = "Id of the import"), ResultsQuery),
    responses(
        (status = 200, description = "The file.", content((String = "text/csv"), (String = "application/x-ndjson"))),
        (status = 404, description = "`import_not_found`"),
        (status = 422, description = "`format_invalid`, `verdict_invalid`"),
    ))]
pub(in crate::web) async fn get_import_results(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Id(id): Id,
    Asked(query): Asked<ResultsQuery>,
) -> Result<Response, Problem> {
    results(&state, &caller, &id, query).await
}

/// The result file, for whoever may know of the import.
pub(in crate::web) async fn results(
    state: &WebState,
    caller: &Caller,
    id: &str,
    query: ResultsQuery,
) -> Result<Response, Problem> {
    let import = own_import(state, caller, id).await?;
    let wanted = verdict(query.verdict.as_deref())?;
    let format: Format = query.format.as_deref().unwrap_or("csv").parse().map_err(|_| wrong_format("csv", "ndjson"))?;
    let kind = match format {
        Format::Csv => "text/csv; charset=utf-8",
        Format::Ndjson => "application/x-ndjson",
    };
    let name = format!("{}-results.{format}", import.id);
    let (app, id) = (state.app.clone(), import.id);
    let part = move |after| {
        let (app, id) = (app.clone(), id.clone());
        async move { files::results(&app, &id, format, wanted, after).await }
    };
    download::send(kind, &name, part).await.map_err(|e: AppError| e.into())
}

/// How the records are wanted.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::web) struct RecordsQuery {
    /// `zone`, a zone file, or `csv`.
    #[param(example = "zone")]
    format: Option<String>,
    /// Of this tenant's claims only, by id or slug.
    #[param(example = "acme")]
    tenant: Option<String>,
}

/// Download the DNS records of an import
///
/// What is to be published for all its open claims, to hand to whoever owns the DNS.
#[utoipa::path(get, path = "/api/v1/imports/{id}/records", tag = "Imports", operation_id = "getImportRecords",
    params(("id" = String, Path, description = "Id of the import"), RecordsQuery),
    responses(
        (status = 200, description = "The file.", content((String = "text/dns"), (String = "text/csv"))),
        (status = 404, description = "`import_not_found`"),
        (status = 422, description = "`format_invalid`, `tenant_unknown`"),
    ))]
pub(in crate::web) async fn get_import_records(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Id(id): Id,
    Asked(query): Asked<RecordsQuery>,
) -> Result<Response, Problem> {
    records(&state, &caller, &id, query).await
}

/// The file of records, for whoever may know of the import.
pub(in crate::web) async fn records(
    state: &WebState,
    caller: &Caller,
    id: &str,
    query: RecordsQuery,
) -> Result<Response, Problem> {
    let import = own_import(state, caller, id).await?;
    let tenant = match &query.tenant {
        Some(named) => whose(state, caller, Some(named)).await?,
        None => None,
    };
    let (written, kind, end) = match query.format.as_deref().unwrap_or("zone") {
        "zone" => (RecordsAs::Zone, "text/dns; charset=utf-8", "zone"),
        "csv" => (RecordsAs::Csv, "text/csv; charset=utf-8", "csv"),
        _ => return Err(wrong_format("zone", "csv")),
    };
    let name = format!("{}-records.{end}", import.id);
    let (app, apex, now, id) = (state.app.clone(), state.settings.apex.clone(), state.app.env.now(), import.id);
    let part = move |after| {
        let (app, apex, id, tenant) = (app.clone(), apex.clone(), id.clone(), tenant.clone());
        async move { files::dns_records(&app, &id, (tenant.as_ref(), &apex), written, after, now).await }
    };
    download::send(kind, &name, part).await.map_err(|e: AppError| e.into())
}
