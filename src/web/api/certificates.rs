//! What is known of certificates; never a key.

use axum::extract::State;
use axum::response::IntoResponse;
use serde::Deserialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use utoipa::IntoParams;

use super::domains::{narrowed_to, whose};
use super::{Page, cursor_text, is_full, next_page, page_length, wrong_cursor};
use crate::app::show::CertificateDocument;
use crate::app::tokens::Principal;
use crate::model::id::CertificateId;
use crate::model::moment::Moment;
use crate::store::certificates::{self, CertificateFilter};
use crate::web::auth::ApiCaller;
use crate::web::input::{Asked, Id, NoQuery};
use crate::web::problem::Problem;
use crate::web::state::WebState;

/// Which certificates are wanted.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::web) struct CertificatesQuery {
    /// Of one domain only.
    #[param(example = "dom_019b0000000070008000000000000001")]
    domain: Option<String>,
    /// Of one tenant only, by id or slug.
    #[param(example = "acme")]
    tenant: Option<String>,
    /// That end before this time.
    #[param(value_type = Option<String>, format = DateTime, example = "2027-01-15T08:00:00Z")]
    expires_before: Option<String>,
    /// From the `next` of the page before.
    #[param(pattern = "^[A-Za-z0-9_-]+$")]
    cursor: Option<String>,
    /// How many items a page holds.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
}

fn moment(field: &str, text: &str) -> Result<Moment, Problem> {
    let read = OffsetDateTime::parse(text, &Rfc3339).ok();
    let detail = "The time must be RFC 3339, such as 2027-01-15T08:00:00Z.";
    read.map(|at| Moment::from_secs(at.unix_timestamp())).ok_or_else(|| Problem::wrong(field, "time_invalid", detail))
}

/// List certificates
///
/// Those that end first in front; what was destroyed is not listed. A tenant's token lists its own.
#[utoipa::path(get, path = "/api/v1/certificates", tag = "Certificates", operation_id = "listCertificates",
    params(CertificatesQuery),
    responses(
        (status = 200, description = "A page of certificates, without their keys.", body = Page<CertificateDocument>),
        (status = 422, description = "`tenant_unknown`, `domain_unknown`, `time_invalid`, `limit_out_of_range`, `cursor_invalid`"),
    ))]
pub(in crate::web) async fn list_certificates(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Asked(query): Asked<CertificatesQuery>,
) -> Result<impl IntoResponse, Problem> {
    let limit = page_length(query.limit)?;
    let before = query.expires_before.as_deref().map(|text| moment("expires_before", text)).transpose()?;
    let tenant = whose(&state, &caller, query.tenant.as_deref()).await?;
    let domain = narrowed_to(&state, &caller, query.domain.as_deref()).await?;
    let place = |text: String| -> Option<(Moment, CertificateId)> {
        let (end, id) = text.split_once(' ')?;
        Some((Moment::from_micros(end.parse().ok()?), id.parse().ok()?))
    };
    let after = match cursor_text(query.cursor.as_deref())? {
        Some(text) => Some(place(text).ok_or_else(wrong_cursor)?),
        None => None,
    };
    let filter = CertificateFilter { tenant, domain, before, after };
    let rows = certificates::list(&state.app.store, &filter, limit).await?;
    let last = rows.last().map(|last| format!("{} {}", last.not_after.micros(), last.id));
    let question = [
        ("limit", Some(limit.to_string())),
        ("tenant", query.tenant),
        ("domain", query.domain),
        ("expires_before", query.expires_before),
    ];
    let next = next_page(&state, "/api/v1/certificates", is_full(&rows, limit), last, &question);
    Ok(axum::Json(Page { items: rows.into_iter().map(CertificateDocument::from).collect(), next }))
}

/// Show a certificate
#[utoipa::path(get, path = "/api/v1/certificates/{id}", tag = "Certificates", operation_id = "getCertificate",
    params(("id" = String, Path, description = "Its id.", example = "crt_019b0000000070008000000000000001")),
    responses(
        (status = 200, description = "The certificate, without its key.", body = CertificateDocument),
        (status = 404, description = "`certificate_not_found`"),
    ))]
pub(in crate::web) async fn get_certificate(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Id(id): Id,
    _: NoQuery,
) -> Result<impl IntoResponse, Problem> {
    let none = || Problem::no_such("certificate_not_found", "There is no certificate with this id.");
    let id: CertificateId = id.parse().map_err(|_| none())?;
    let found = certificates::lookup(&state.app.store, &id).await?;
    let own = found.filter(|c| match (&c.tenant_id, &caller.principal) {
        (_, Principal::Operator) => true,
        (Some(tenant), principal) => principal.may_touch(tenant),
        (None, Principal::Tenant(_)) => false,
    });
    Ok(axum::Json(CertificateDocument::from(own.ok_or_else(none)?)))
}
