//! API and pages over the rig's world, called without a socket.

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode};
use base64::Engine as _;
use http_body_util::BodyExt as _;
use nameplate::app::tokens::{self, Principal};
use nameplate::model::hostname::NameRules;
use nameplate::model::id::TenantId;
use nameplate::model::ledger::Limit;
use nameplate::model::records::ApexRoute;
use nameplate::web::{WebSettings, WebState, router};
use serde_json::Value;
use tower::ServiceExt as _;

use super::rig::Rig;

/// Where the pages think they are.
pub const PUBLIC_URL: &str = "https://portal.example";

/// The rig with its router, an operator, and tenants as asked for.
pub struct Web {
    pub rig: Rig,
    pub router: Router,
    pub operator: String,
}

/// An answer, read whole.
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e} in {:?}", self.body))
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The problem's status and code; checks that it is a whole problem document.
    #[track_caller]
    pub fn problem(&self) -> (u16, String) {
        assert_eq!(self.header("content-type"), "application/problem+json", "{}", self.body);
        let body = self.json();
        assert_eq!(body["status"], self.status.as_u16());
        for field in ["type", "title", "detail", "instance", "code"] {
            assert!(body[field].as_str().is_some_and(|text| !text.is_empty()), "{field} in {body}");
        }
        (self.status.as_u16(), body["code"].as_str().unwrap().to_owned())
    }
}

impl Web {
    pub async fn new(seed: u64) -> Web {
        Web::over(Rig::new(seed).await).await
    }

    /// The same over a CA that takes so many orders.
    pub async fn limited(seed: u64, limit: Limit) -> Web {
        Web::over(Rig::with_limit(seed, "sqlite::memory:", limit).await).await
    }

    /// The same over a world that is there.
    pub async fn over(rig: Rig) -> Web {
        let settings = WebSettings {
            public_url: PUBLIC_URL.to_owned(),
            rules: NameRules { reserved_zones: vec!["app.example".into()], extra_suffixes: vec!["test".into()] },
            apex: ApexRoute { target: None, addresses: vec!["192.0.2.80".parse().unwrap()] },
            trusted_proxies: vec![],
        };
        let router = router(WebState { app: rig.app.clone(), settings: settings.into() });
        let operator = Web::mint(&rig, &Principal::Operator).await;
        Web { rig, router, operator }
    }

    async fn mint(rig: &Rig, principal: &Principal) -> String {
        let minted = tokens::mint(&rig.app.store, &rig.env, principal, "test", None).await.unwrap();
        minted.text.expose_str().unwrap().to_owned()
    }

    /// A tenant and a token of its own.
    pub async fn tenant(&self, slug: &str) -> (TenantId, String) {
        let id = self.rig.tenant(slug).await;
        let token = Web::mint(&self.rig, &Principal::Tenant(id.clone())).await;
        (id, token)
    }

    /// Sends what was built.
    pub async fn send(&self, request: Request<Body>) -> Answer {
        let (parts, body) = self.router.clone().oneshot(request).await.unwrap().into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        Answer { status: parts.status, headers: parts.headers, body: String::from_utf8(bytes.to_vec()).unwrap() }
    }

    /// A request of the API.
    pub async fn api(&self, token: &str, method: &str, path: &str, body: Option<Value>) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        if !token.is_empty() {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let body = match body {
            None => Body::empty(),
            Some(json) => {
                request = request.header("content-type", "application/json");
                Body::from(json.to_string())
            }
        };
        self.send(request.body(body).unwrap()).await
    }

    /// A request of a browser that was asked for its password.
    pub fn browser(&self, token: &str, method: &str, path: &str) -> axum::http::request::Builder {
        let credentials = base64::engine::general_purpose::STANDARD.encode(format!("anybody:{token}"));
        Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", format!("Basic {credentials}"))
            .header("accept", "text/html,application/xhtml+xml")
    }
}
