//! A client of the API, for the commands that ask it like anybody else.

use std::io::Write;

use anyhow::{Context as _, bail};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Surroundings;
use crate::model::secret::Secret;
use crate::web::query;

/// Where the API is expected when nothing is said: where `serve` listens when nothing is said.
const DEFAULT_SERVER: &str = "http://127.0.0.1:8080";

/// So many items of a list are asked for at once.
const PAGE: &str = "200";

/// A page of a list.
#[derive(Deserialize)]
pub(super) struct Page<T> {
    pub items: Vec<T>,
    pub next: Option<String>,
}

/// A client with its token.
pub(super) struct ApiClient {
    http: Client,
    server: String,
    token: Secret,
}

impl ApiClient {
    /// From options and environment.
    pub(super) fn new(surroundings: &Surroundings, server: Option<String>, token: Option<String>) -> anyhow::Result<Self> {
        let server = server.or_else(|| surroundings.variable("NAMEPLATE_SERVER").map(str::to_owned));
        let token = token.or_else(|| surroundings.variable("NAMEPLATE_TOKEN").map(str::to_owned));
        let Some(token) = token else {
            bail!("a token is needed: set NAMEPLATE_TOKEN, or give --token (make one: nameplate token create --operator)")
        };
        let server = server.unwrap_or_else(|| DEFAULT_SERVER.into()).trim_end_matches('/').to_owned();
        // A token goes to the server that was named and nowhere else.
        let http = Client::builder().redirect(reqwest::redirect::Policy::none()).build().context("no HTTP client")?;
        Ok(ApiClient { http, server, token: Secret::from(token) })
    }

    /// A request to a path of the API.
    pub(super) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let token = self.token.expose_str().unwrap_or_default();
        self.http.request(method, format!("{}{path}", self.server)).bearer_auth(token)
    }

    /// Every item of the list at `path`, page by page, narrowed by these questions.
    pub(super) async fn all<T: DeserializeOwned>(&self, path: &str, narrowed: &[(&str, &str)]) -> anyhow::Result<Vec<T>> {
        let mut question = query(&[narrowed, &[("limit", PAGE)]].concat());
        let mut items = Vec::new();
        loop {
            let mut page: Page<T> = self.send(self.request(Method::GET, &format!("{path}?{question}"))).await?;
            items.append(&mut page.items);
            // Only the question is taken from the link: the server may be reached under another name than its own.
            match page.next.as_deref().and_then(|next| next.split_once('?')) {
                Some((_, next)) => question = next.to_owned(),
                None => return Ok(items),
            }
        }
    }

    /// Copies a file of the API to `to`, piece by piece.
    pub(super) async fn copy(&self, path: &str, to: &mut dyn Write) -> anyhow::Result<()> {
        let request = self.request(Method::GET, path);
        let mut answer = request.send().await.with_context(|| format!("the API at {} cannot be reached", self.server))?;
        if !answer.status().is_success() {
            return self.refusal(answer).await;
        }
        while let Some(piece) = answer.chunk().await.context("the API's answer broke off; what came is not whole")? {
            to.write_all(&piece)?;
        }
        Ok(to.flush()?)
    }

    /// Sends it; a problem document becomes the error.
    pub(super) async fn send<T: DeserializeOwned>(&self, request: RequestBuilder) -> anyhow::Result<T> {
        let response = request.send().await.with_context(|| format!("the API at {} cannot be reached", self.server))?;
        if response.status().is_success() {
            let body = response.bytes().await.context("the API's answer broke off")?;
            return serde_json::from_slice(&body).with_context(|| self.stranger("in a form that is not Nameplate's"));
        }
        self.refusal(response).await
    }

    /// Sends it, for an answer without a document.
    pub(super) async fn done(&self, request: RequestBuilder) -> anyhow::Result<()> {
        let response = request.send().await.with_context(|| format!("the API at {} cannot be reached", self.server))?;
        if response.status().is_success() { Ok(()) } else { self.refusal(response).await }
    }

    /// What is said of an answer that no Nameplate gives.
    fn stranger(&self, how: &str) -> String {
        format!(
            "what answers at {} is no Nameplate API, or something before it ({how}): give --server or NAMEPLATE_SERVER the \
             address where `nameplate serve` listens",
            self.server
        )
    }

    /// The error of an answer that says no.
    async fn refusal<T>(&self, response: Response) -> anyhow::Result<T> {
        let status = response.status();
        let body = response.bytes().await.context("the API's answer broke off")?;
        let problem: Value = serde_json::from_slice(&body).unwrap_or_default();
        let said = match (problem.get("detail").and_then(Value::as_str), problem.get("code").and_then(Value::as_str)) {
            (Some(detail), Some(code)) if status.is_server_error() => {
                let request = problem.get("request_id").and_then(Value::as_str).unwrap_or("-");
                format!("{detail} ({code}, request {request})")
            }
            (Some(detail), Some(code)) => format!("{detail} ({code})"),
            _ => self.stranger(&status.to_string()),
        };
        Err(Refused { passes: status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS, said }.into())
    }
}

/// The API said no.
#[derive(Debug, thiserror::Error)]
#[error("{said}")]
pub(super) struct Refused {
    said: String,
    /// Whether the same request may do better later.
    pub passes: bool,
}
