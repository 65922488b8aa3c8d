//! The public API, as a customer's own code would speak it.

use std::time::Duration;

use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::app::show::DomainView;
use crate::model::id::DomainId;
use crate::model::secret::Secret;

/// How long a request may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The API said no, or nothing.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// It does not answer, or not in its own words.
    #[error("the API did not answer as it should")]
    Http(#[from] reqwest::Error),
    /// It refused, with its problem document.
    #[error("the API answered {status}: {said}")]
    Refused {
        /// The status.
        status: StatusCode,
        /// What it said.
        said: String,
    },
}

/// A line to the API.
pub struct Api {
    http: Client,
    url: String,
    token: Secret,
}

impl Api {
    /// At this origin, with this token.
    pub fn new(url: String, token: Secret) -> Result<Api, reqwest::Error> {
        let http = Client::builder().no_proxy().timeout(PATIENCE).build()?;
        Ok(Api { http, url, token })
    }

    /// Adds a tenant; whether it was not there before.
    pub async fn add_tenant(&self, slug: &str) -> Result<bool, ApiError> {
        let request = self.http.post(self.at("/api/v1/tenants")).json(&json!({ "slug": slug }));
        match self.send(request).await {
            Ok(_) => Ok(true),
            Err(ApiError::Refused { status: StatusCode::CONFLICT, .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// A link that signs a tenant's admin in.
    pub async fn portal_link(&self, tenant: &str) -> Result<String, ApiError> {
        let made: Value =
            self.read(self.http.post(self.at("/api/v1/portal-links")).json(&json!({ "tenant": tenant }))).await?;
        Ok(made["url"].as_str().unwrap_or_default().to_owned())
    }

    /// Claims a hostname.
    pub async fn claim(&self, tenant: &str, hostname: &str) -> Result<DomainView, ApiError> {
        let body = json!({ "tenant": tenant, "hostname": hostname });
        self.read(self.http.post(self.at("/api/v1/domains")).json(&body)).await
    }

    /// Asks for a look now; `false` when this was asked for a moment ago.
    pub async fn check(&self, id: &DomainId) -> Result<bool, ApiError> {
        match self.send(self.http.post(self.at(&format!("/api/v1/domains/{id}/check")))).await {
            Ok(_) => Ok(true),
            Err(ApiError::Refused { status: StatusCode::TOO_MANY_REQUESTS, .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// A domain as it stands.
    pub async fn domain(&self, id: &DomainId) -> Result<DomainView, ApiError> {
        self.read(self.http.get(self.at(&format!("/api/v1/domains/{id}")))).await
    }

    fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, ApiError> {
        let answer = request.bearer_auth(self.token.expose_str().unwrap_or_default()).send().await?;
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let problem: Value = answer.json().await.unwrap_or_default();
        let said = problem["detail"].as_str().or(problem["title"].as_str()).unwrap_or("nothing more");
        Err(ApiError::Refused { status, said: said.to_owned() })
    }

    async fn read<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, ApiError> {
        Ok(self.send(request).await?.json().await?)
    }
}
