//! Every "no" of API and pages: RFC 9457 problem details, or the same as a page for people.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{Html, IntoResponse, Response};
use serde::Serialize;
use serde_json::json;

use super::frame;
use super::links::sign_in_for;
use super::pages::ProblemPage;
use super::request_id::RequestId;
use super::state::WebState;
use super::visible::visible;
use crate::app::AppError;
use crate::app::check::CheckError;
use crate::app::claim::ClaimError;
use crate::app::pair::PairError;
use crate::app::remove::RemoveError;
use crate::model::claim::Claim;
use crate::model::hostname::HostnameError;
use crate::model::label::LabelError;
use crate::store::StoreError;
use crate::telemetry::Chain;

/// What is wrong with one field of the input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldError {
    /// JSON pointer into the body, or the name of a query parameter.
    pub field: String,
    /// Stable code.
    pub code: &'static str,
    /// What was seen and what to give instead.
    pub detail: String,
    /// A value that would be accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

/// A problem.
#[derive(Clone, Debug)]
pub struct Problem {
    status: StatusCode,
    code: &'static str,
    title: &'static str,
    detail: String,
    errors: Vec<FieldError>,
    retry_after: Option<Duration>,
    challenge: Option<&'static str>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, code: &'static str, title: &'static str, detail: impl Into<String>) -> Self {
        Problem { status, code, title, detail: detail.into(), errors: vec![], retry_after: None, challenge: None }
    }

    /// There is none, or it is somebody else's: nobody can tell which.
    pub(super) fn no_domain() -> Self {
        Self::new(StatusCode::NOT_FOUND, "domain_not_found", "No such domain", "There is no domain with this id.")
    }

    pub(super) fn no_tenant() -> Self {
        Self::new(StatusCode::NOT_FOUND, "tenant_not_found", "No such tenant", "There is no tenant with this id or slug.")
    }

    pub(super) fn no_import() -> Self {
        Self::no_such("import_not_found", "There is no import with this id.")
    }

    pub(super) fn no_route() -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", "Not found", "There is nothing at this address.")
    }

    pub(super) fn wrong_method() -> Self {
        let detail = "This address does not take this method; the Allow header lists those it takes.";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "Method not allowed", detail)
    }

    pub(super) fn unauthorized(challenge: &'static str) -> Self {
        let detail = "A valid API token is needed. Make one with `nameplate token create`.";
        let problem = Self::new(StatusCode::UNAUTHORIZED, "unauthorized", "A token is needed", detail);
        Problem { challenge: Some(challenge), ..problem }
    }

    /// A page that is shown to those who are signed in only.
    pub(super) fn not_signed_in() -> Self {
        let detail = "Open it from the application that you manage your domains for; its link signs you in. Operators sign in \
                      with their token.";
        let problem = Self::new(StatusCode::UNAUTHORIZED, "unauthorized", "Please sign in", detail);
        Problem { challenge: Some("Session realm=\"nameplate\""), ..problem }
    }

    /// The same as a fault of a query's parameter, where something was not found by it.
    pub(super) fn of_query(self, field: &str, code: &'static str, detail: &str) -> Self {
        if self.status == StatusCode::NOT_FOUND { Self::wrong(field, code, detail) } else { self }
    }

    /// Nothing of that kind with that id that the caller may know of.
    pub(super) fn no_such(code: &'static str, detail: &'static str) -> Self {
        Self::new(StatusCode::NOT_FOUND, code, "Not found", detail)
    }

    /// The thing is another version than the request counts on.
    pub(super) fn changed(detail: String) -> Self {
        Self::new(StatusCode::PRECONDITION_FAILED, "changed_meanwhile", "It changed in the meantime", detail)
    }

    /// Our fault; the log has more.
    pub(super) fn failed() -> Self {
        let detail = "This failed on our side and was written to the log. Nothing was changed.";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "failed", "This failed on our side", detail)
    }

    pub(super) fn operators_only() -> Self {
        let detail = "This is for operator tokens only.";
        Self::new(StatusCode::FORBIDDEN, "operator_needed", "An operator token is needed", detail)
    }

    pub(super) fn forged(detail: String) -> Self {
        Self::new(StatusCode::FORBIDDEN, "form_not_ours", "The form was not sent from its page", detail)
    }

    /// One field is wrong.
    pub(super) fn field(error: FieldError) -> Self {
        let problem =
            Self::new(StatusCode::UNPROCESSABLE_ENTITY, error.code, "The input is not valid", error.detail.clone());
        Problem { errors: vec![error], ..problem }
    }

    pub(super) fn hostname(e: HostnameError) -> Self {
        let problem = Self::new(StatusCode::UNPROCESSABLE_ENTITY, e.code, "The hostname cannot be claimed", e.to_string());
        let error = FieldError { field: "/hostname".into(), code: e.code, detail: e.message, suggestion: e.suggestion };
        Problem { errors: vec![error], ..problem }
    }

    /// The same of another field.
    pub(super) fn at(mut self, field: &str) -> Self {
        self.errors.iter_mut().for_each(|error| field.clone_into(&mut error.field));
        self
    }

    pub(super) fn already_removed(on_its_way: bool) -> Self {
        let said = if on_its_way {
            "This domain was removed already and is on its way out."
        } else {
            "This domain was removed already."
        };
        Problem::refused("already_removed", said.into())
    }

    pub(super) fn page_failed(e: &(dyn std::error::Error + 'static)) -> Self {
        tracing::error!(error = %Chain(e), "a page could not be rendered");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "page_failed", "This page failed", "The page could not be rendered.")
    }

    /// A text that is no label, in this field.
    pub(super) fn label(field: &str, e: &LabelError) -> Self {
        let code = match e {
            LabelError::Length { what: "name", .. } => "name_length",
            LabelError::Length { what: "tier", .. } => "tier_length",
            LabelError::Length { .. } => "label_length",
            LabelError::Unseen { what: "name", .. } => "name_unseen_character",
            LabelError::Unseen { what: "tier", .. } => "tier_unseen_character",
            LabelError::Unseen { .. } => "label_unseen_character",
        };
        Self::wrong(field, code, e.to_string())
    }

    /// What it says.
    pub(super) fn detail(&self) -> &str {
        &self.detail
    }

    /// The status that it is answered with.
    pub(super) fn status(&self) -> StatusCode {
        self.status
    }

    /// Whether whoever sent the request can do better.
    pub(super) fn is_senders(&self) -> bool {
        self.status.is_client_error()
    }

    /// With what is wrong at one place.
    pub(super) fn with(mut self, error: FieldError) -> Self {
        self.errors.push(error);
        self
    }

    /// One field is wrong, and nothing is suggested.
    pub(super) fn wrong(field: &str, code: &'static str, detail: impl Into<String>) -> Self {
        Self::field(FieldError { field: field.to_owned(), code, detail: detail.into(), suggestion: None })
    }

    /// Not possible as things stand.
    pub(super) fn refused(code: &'static str, detail: String) -> Self {
        Self::new(StatusCode::CONFLICT, code, "Not possible as things stand", detail)
    }

    pub(super) fn after(self, wait: Duration) -> Self {
        Problem { retry_after: Some(wait), ..self }
    }

    fn json(&self, instance: &str, request: Option<&RequestId>) -> String {
        let mut body = json!({
            "type": format!("urn:nameplate:problem:{}", self.code),
            "title": self.title,
            "status": self.status.as_u16(),
            "detail": self.detail,
            "instance": instance,
            "code": self.code,
        });
        if let Some(request) = request {
            body["request_id"] = json!(request.as_str());
        }
        if !self.errors.is_empty() {
            body["errors"] = json!(self.errors);
        }
        body.to_string()
    }
}

impl From<StoreError> for Problem {
    fn from(e: StoreError) -> Self {
        tracing::error!(error = %Chain(&e), "a request failed at the store");
        let detail = "The store cannot be used at the moment. Nothing was changed; try again.";
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "store_unavailable", "Try again shortly", detail)
            .after(Duration::from_secs(5))
    }
}

impl From<AppError> for Problem {
    fn from(e: AppError) -> Self {
        match e {
            AppError::Store(e) => e.into(),
            e => {
                tracing::error!(error = %Chain(&e), "a request failed");
                Problem::failed()
            }
        }
    }
}

impl From<ClaimError> for Problem {
    fn from(e: ClaimError) -> Self {
        match e {
            ClaimError::NoTenant(_) => Problem::refused("tenant_not_active", e.to_string()),
            ClaimError::App(e) => e.into(),
        }
    }
}

impl From<PairError> for Problem {
    fn from(e: PairError) -> Self {
        let said = e.to_string();
        match e {
            PairError::NotFound(_) => Problem::no_domain(),
            PairError::NoOtherHalf(_) => Problem::wrong("/with_partner", "no_other_half", said),
            PairError::NotTheOtherHalf { half, .. } => Problem::field(FieldError {
                field: "/redirect_to".into(),
                code: "not_the_other_half",
                detail: said,
                suggestion: Some(half.to_string()),
            }),
            PairError::NotClaimed(_) => Problem::refused("other_half_not_claimed", said),
            PairError::Loop(_) => Problem::refused("redirect_loop", said),
            PairError::Closed => Problem::refused("claim_closed", said),
            PairError::Changed(_) => Problem::changed(said),
            PairError::Claim(e) => e.into(),
            PairError::App(e) => e.into(),
        }
    }
}

impl From<CheckError> for Problem {
    fn from(e: CheckError) -> Self {
        let said = e.to_string();
        match e {
            CheckError::NotOpen(_) => Problem::refused("claim_closed", said),
            CheckError::TooSoon(wait) => {
                Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_soon", "Asked again too soon", said).after(wait)
            }
            CheckError::Changed(_) => Problem::changed(said),
            CheckError::App(e) => e.into(),
        }
    }
}

impl From<RemoveError> for Problem {
    fn from(e: RemoveError) -> Self {
        match e {
            RemoveError::NotFound(_) => Problem::no_domain(),
            RemoveError::Refused(step) => Problem::already_removed(step.from == Claim::Releasing),
            RemoveError::Changed(_) => Problem::changed(e.to_string()),
            RemoveError::App(e) => e.into(),
        }
    }
}

impl IntoResponse for Problem {
    /// Leaves the problem with the response; [`write_problems`] writes it, for it knows the request.
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        let headers = response.headers_mut();
        if let Some(wait) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(wait.as_secs().max(1)));
        }
        if let Some(challenge) = self.challenge {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        }
        response.extensions_mut().insert(self);
        response
    }
}

/// Writes the problem a handler left: as JSON, or as a page to those who asked for HTML outside the API.
pub(super) async fn write_problems(State(state): State<WebState>, request: Request, next: Next) -> Response {
    let instance = request.uri().path().to_owned();
    let shown_again = request.method() == Method::GET;
    let id = request.extensions().get::<RequestId>().cloned();
    let accepts = request.headers().get(header::ACCEPT).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let as_page = !instance.starts_with("/api/") && accepts.contains("text/html");
    let mut response = next.run(request).await;
    let Some(problem) = response.extensions_mut().remove::<Problem>() else { return response };
    let page = if as_page {
        let page = ProblemPage {
            status: problem.status.as_u16(),
            title: problem.title,
            detail: &visible(&problem.detail),
            home: &state.settings.public_url,
            sign_in: (problem.status == StatusCode::UNAUTHORIZED)
                .then(|| sign_in_for(if shown_again { &instance } else { "/" })),
        };
        frame::render(&page).ok()
    } else {
        None
    };
    let (kind, body) = match page {
        Some(html) => ("text/html; charset=utf-8", html),
        None => ("application/problem+json", problem.json(&instance, id.as_ref())),
    };
    let (mut parts, _) = response.into_parts();
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(body))
}

/// A rendered page, or the problem that it could not be rendered.
pub(super) fn html(page: &impl askama::Template) -> Result<Html<String>, Problem> {
    frame::render(page).map(Html).map_err(|e| Problem::page_failed(&e))
}
