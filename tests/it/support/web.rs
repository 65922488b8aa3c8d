//! API and pages over the rig's world, called without a socket.

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt as _;
use nameplate::app::tokens::{self, Principal};
use nameplate::config::{Config, Sources};
use nameplate::model::hostname::NameRules;
use nameplate::model::id::TenantId;
use nameplate::model::ledger::Limit;
use nameplate::model::records::ApexRoute;
use nameplate::web::{Brand, Live, WebSettings, WebState, router};
use serde_json::Value;
use tower::ServiceExt as _;

use super::rig::Rig;

/// Where the pages think they are.
pub const PUBLIC_URL: &str = "https://portal.example";

/// So much that no test is held up that does not ask for it.
const UNHURRIED: &str = "[api]\nrequests_per_minute = 1000000\nfailures_per_minute = 1000000\nbody_timeout = \"30s\"\n";

/// The rig with its router, an operator, and tenants as asked for.
pub struct Web {
    pub rig: Rig,
    pub router: Router,
    pub live: Live,
    pub operator: String,
    state: WebState,
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

    /// What a browser sends back of the cookie that was set.
    #[track_caller]
    pub fn cookie(&self) -> String {
        let set = self.header("set-cookie");
        assert!(!set.is_empty(), "no cookie was set: {}", self.body);
        set.split(';').next().unwrap().to_owned()
    }

    /// The token of the forms on this page.
    #[track_caller]
    pub fn csrf(&self) -> String {
        let after =
            self.body.split("name=\"csrf\" value=\"").nth(1).unwrap_or_else(|| panic!("no form token: {}", self.body));
        after.split('"').next().unwrap().to_owned()
    }

    /// Headers and body without what differs from answer to answer: the id of the request, and how many are left.
    pub fn said(&self) -> (String, String) {
        let (id, mut headers) = (self.header("x-request-id"), self.headers.clone());
        headers.remove("ratelimit");
        (format!("{headers:?}").replace(id, "ID"), self.body.replace(id, "ID"))
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
        Web::configured(seed, "").await
    }

    /// One whose callers may ask so often in a minute: with a token, and without.
    pub async fn paced(seed: u64, requests_per_minute: u32, failures_per_minute: u32) -> Web {
        let pace =
            format!("[api]\nrequests_per_minute = {requests_per_minute}\nfailures_per_minute = {failures_per_minute}\n");
        Web::over(Rig::new(seed).await, &pace).await
    }

    /// Over a CA that takes so many orders.
    pub async fn limited(seed: u64, limit: Limit) -> Web {
        Web::on(Rig::with_limit(seed, "sqlite::memory:", limit).await, "").await
    }

    /// With these lines of configuration for the portal and the brand.
    pub async fn configured(seed: u64, lines: &str) -> Web {
        Web::on(Rig::new(seed).await, lines).await
    }

    /// Over a rig that is there.
    pub async fn on(rig: Rig, lines: &str) -> Web {
        Web::over(rig, &format!("{UNHURRIED}{lines}")).await
    }

    async fn over(rig: Rig, lines: &str) -> Web {
        let config = Config::read(Sources::none().file("test", lines)).unwrap();
        let settings = WebSettings {
            public_url: PUBLIC_URL.to_owned(),
            rules: NameRules { reserved_zones: vec!["app.example".into()], extra_suffixes: vec!["test".into()] },
            apex: ApexRoute { target: None, addresses: vec!["192.0.2.80".parse().unwrap()] },
            trusted_proxies: vec![],
            portal: config.portal.clone(),
            brand: Brand::new(&config.brand).unwrap(),
            api: config.api,
            connect: None,
            hooks: config.hook_rules(),
            imports: config.imports,
        };
        let state = WebState::new(rig.app.clone(), settings);
        let operator = Web::mint(&rig, &Principal::Operator).await;
        Web { rig, live: state.live.clone(), router: router(state.clone()), operator, state }
    }

    /// The same with offers of DNS providers that set records themselves.
    pub fn connecting(self, connect: nameplate::web::Connect) -> Web {
        let settings = WebSettings { connect: Some(std::sync::Arc::new(connect)), ..(*self.state.settings).clone() };
        let state = WebState::new(self.rig.app.clone(), settings);
        Web { live: state.live.clone(), router: router(state.clone()), state, ..self }
    }

    /// The same where bare domains are led elsewhere.
    pub fn leading_bare_names(self, apex: ApexRoute) -> Web {
        let settings = WebSettings { apex, ..(*self.state.settings).clone() };
        let state = WebState::new(self.rig.app.clone(), settings);
        Web { live: state.live.clone(), router: router(state.clone()), state, ..self }
    }

    /// A second process on the same database.
    pub fn beside(&self) -> Router {
        router(WebState::new(self.rig.app.clone(), (*self.state.settings).clone()))
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
        Web::send_to(&self.router, request).await
    }

    /// Sends it to a router.
    pub async fn send_to(router: &Router, request: Request<Body>) -> Answer {
        let (parts, body) = router.clone().oneshot(request).await.unwrap().into_parts();
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

    /// A request of a browser with this cookie, if any.
    pub fn browser(&self, cookie: &str, method: &str, path: &str) -> axum::http::request::Builder {
        let mut request = Request::builder().method(method).uri(path).header("accept", "text/html,application/xhtml+xml");
        if !cookie.is_empty() {
            request = request.header("cookie", cookie);
        }
        request
    }

    /// A page.
    pub async fn page(&self, cookie: &str, path: &str) -> Answer {
        self.send(self.browser(cookie, "GET", path).body(Body::empty()).unwrap()).await
    }

    /// A form sent from our own page.
    pub async fn post(&self, cookie: &str, path: &str, form: &str) -> Answer {
        let request = self
            .browser(cookie, "POST", path)
            .header("origin", PUBLIC_URL)
            .header("content-type", "application/x-www-form-urlencoded");
        self.send(request.body(Body::from(form.to_owned())).unwrap()).await
    }

    /// The path of a fresh portal link for a tenant.
    pub async fn portal_link(&self, tenant: &TenantId) -> String {
        let body = serde_json::json!({ "tenant": tenant });
        let made = self.api(&self.operator, "POST", "/api/v1/portal-links", Some(body)).await;
        assert_eq!(made.status, 201, "{}", made.body);
        made.json()["url"].as_str().unwrap().strip_prefix(PUBLIC_URL).unwrap().to_owned()
    }

    /// The cookie of a tenant's admin who came by a link.
    pub async fn admin(&self, tenant: &TenantId) -> String {
        let link = self.portal_link(tenant).await;
        let entered = self.post("", &link, "").await;
        assert_eq!(entered.status, 303, "{}", entered.body);
        entered.cookie()
    }

    /// The cookie of a signed-in operator.
    pub async fn signed_in_operator(&self) -> String {
        let answer = self.post("", "/operator/sign-in", &format!("token={}", self.operator)).await;
        assert_eq!(answer.status, 303, "{}", answer.body);
        answer.cookie()
    }

    /// The token of the forms on a page.
    pub async fn csrf(&self, cookie: &str) -> String {
        self.page(cookie, "/domains/add").await.csrf()
    }
}
