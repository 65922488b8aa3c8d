//! The description of the API (OpenAPI 3.1): put together from the handlers' own, with what holds for all of them added.

use std::sync::LazyLock;

use axum::http::header;
use axum::response::IntoResponse;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::request_body::RequestBody;
use utoipa::openapi::response::{Response, ResponseBuilder};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Ref, RefOr, Required};
use utoipa::{Modify, OpenApi, ToSchema};

use super::{
    alerts, apply_link, budget, bulk, bulk_check, bulk_files, certificates, contacts, deliveries, domains, edges, events,
    explain, history, letting_go, links, offboard, orders, recovery, redirect, reissues, tenants, tokens, webhooks,
    zone_file,
};

/// What is wrong with one field.
#[derive(ToSchema)]
#[schema(as = FieldError)]
#[expect(dead_code, reason = "read by the derive alone: a problem writes itself")]
struct FieldErrorDocument {
    /// JSON pointer into the body, or the name of a query parameter.
    #[schema(example = "/hostname")]
    field: String,
    /// Stable code.
    #[schema(example = "hostname_has_port")]
    code: String,
    /// What was seen and what to give instead.
    detail: String,
    /// A value that would be accepted.
    #[schema(nullable = false)]
    suggestion: Option<String>,
}

/// Why a request was refused (RFC 9457).
#[derive(ToSchema)]
#[schema(as = Problem)]
#[expect(dead_code, reason = "read by the derive alone: a problem writes itself")]
struct ProblemDocument {
    /// `urn:nameplate:problem:` and the code.
    #[schema(rename = "type", example = "urn:nameplate:problem:hostname_has_port")]
    r#type: String,
    /// What kind of problem it is.
    title: String,
    /// The status of the answer.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// What was seen, what is wanted, what to do.
    detail: String,
    /// The path that was asked for.
    instance: String,
    /// Stable code.
    #[schema(example = "hostname_has_port")]
    code: String,
    /// The name of the request, as in the log.
    request_id: String,
    /// The fields that are wrong.
    #[schema(nullable = false)]
    errors: Option<Vec<FieldErrorDocument>>,
}

#[derive(OpenApi)]
#[openapi(
    info(title = "Nameplate", version = "1", description = "A domain of their own for every customer of a SaaS.\n\nRequests carry `Authorization: Bearer TOKEN`. An operator's token sees and does everything; a tenant's sees and does what is its own, and everything else answers exactly as what does not exist. Times are RFC 3339 in UTC. Unknown fields and unknown query parameters are refused.", license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")),
    servers((url = "/", description = "Where this description was read.")),
    tags(
        (name = "Tenants", description = "The customers of the platform."),
        (name = "Contacts", description = "The addresses to which a tenant's mail goes."),
        (name = "Domains", description = "Claims on hostnames: what to publish, what is seen, what comes next."),
        (name = "Imports", description = "Files of names, and what became of each row."),
        (name = "Links", description = "What lets people in: the portal for a tenant's admin, one domain's records for whoever owns its DNS."),
        (name = "Events", description = "The numbered stream of everything that happened."),
        (name = "Webhooks", description = "Places that events are sent to, signed, in order and until they arrive."),
        (name = "Alerts", description = "What somebody should know of now."),
        (name = "Certificates", description = "What is known of certificates. Their keys never leave the vault by this way."),
        (name = "Orders", description = "What waits at the certificate authorities."),
        (name = "Edges", description = "The nodes that terminate TLS."),
        (name = "Tokens", description = "What opens this API."),
    ),
    paths(
        tenants::create_tenant, tenants::list_tenants, tenants::get_tenant, tenants::change_tenant,
        offboard::remove_tenant, offboard::list_dangling,
        contacts::add_contact, contacts::list_contacts, contacts::remove_contact,
        domains::claim_domain, domains::list_domains, domains::get_domain, zone_file::get_zone_file, apply_link::get_apply_link,
        domains::check_domain,
        domains::remove_domain, letting_go::undo_removal, letting_go::end_release, letting_go::list_left_behind,
        redirect::change_domain,
        bulk::create_import, bulk::list_imports, bulk::get_import, bulk::pause_import, bulk::resume_import,
        bulk::cancel_import, bulk::start_import, bulk_check::check_import,
        bulk_files::list_import_rows, bulk_files::get_import_results, bulk_files::get_import_records,
        history::list_attempts, history::list_evidence, explain::explain_hostname,
        links::create_portal_link, links::list_portal_links, links::revoke_portal_link,
        links::create_hand_off_link, links::list_hand_off_links, links::revoke_hand_off_link,
        events::list_events,
        webhooks::create_webhook, webhooks::list_webhooks, webhooks::get_webhook, webhooks::remove_webhook,
        webhooks::rotate_webhook_secret, webhooks::enable_webhook,
        deliveries::test_webhook, deliveries::list_deliveries, deliveries::replay_deliveries,
        alerts::list_alerts,
        certificates::list_certificates, certificates::get_certificate,
        reissues::create_reissue, reissues::list_reissues, reissues::get_reissue, reissues::cancel_reissue,
        orders::list_orders, budget::show_budget,
        recovery::get_recovery, recovery::end_recovery,
        edges::list_edges, edges::get_edge, edges::drain_edge, edges::undrain_edge,
        tokens::create_token, tokens::list_tokens, tokens::get_token, tokens::revoke_token,
    ),
    components(schemas(ProblemDocument)),
    modifiers(&ForAll),
)]
struct Description;

/// What holds for every operation.
struct ForAll;

impl Modify for ForAll {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let components = openapi.components.get_or_insert_default();
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("A token made with `nameplate token create`, or by this API."));
        components.add_security_scheme("token", SecurityScheme::Http(scheme.build()));
        for (name, status, about) in SHARED {
            let mut response = ResponseBuilder::new().description(*about).build();
            finish(status, true, &mut response);
            components.responses.insert((*name).to_owned(), RefOr::T(response));
        }
        openapi.security = Some(vec![SecurityRequirement::new("token", Vec::<String>::new())]);
        for item in openapi.paths.paths.values_mut() {
            each(item, complete);
        }
    }
}

/// Every operation of a path, with whether it reads only.
fn each(item: &mut PathItem, mut with: impl FnMut(&mut Operation, Kind)) {
    let PathItem { get, put, post, delete, patch, .. } = item;
    let all = [(get, Kind::Read), (put, Kind::Change), (post, Kind::Post), (delete, Kind::Change), (patch, Kind::Change)];
    for (operation, kind) in all {
        if let Some(operation) = operation {
            with(operation, kind);
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Change,
    Post,
}

fn text_header(description: &str) -> Header {
    let schema = ObjectBuilder::new().schema_type(Type::String).build();
    HeaderBuilder::new().schema(Some(schema)).description(Some(description)).build()
}

/// Answers that many operations share: name, status, the codes or what it means.
const SHARED: &[(&str, &str, &str)] = &[
    ("NotModified", "304", "The caller has it already."),
    ("BadQuery", "400", "`bad_query`"),
    ("BadRequest", "400", "`bad_query`, `bad_json`, `body_cut_off`"),
    ("BadKeyedRequest", "400", "`bad_query`, `bad_json`, `body_cut_off`, `idempotency_key_invalid`"),
    ("Unauthorized", "401", "`unauthorized`"),
    ("BodyTooSlow", "408", "`body_too_slow`"),
    ("BodyTooLarge", "413", "`body_too_large`"),
    ("NotJson", "415", "`not_json`"),
    ("TooManyRequests", "429", "`too_many_requests`"),
    ("Failed", "500", "`failed`"),
    ("Unavailable", "503", "`store_unavailable`"),
];

/// Adds what follows from the status of an answer: its document, where it is a problem, and its headers.
fn finish(status: &str, reads: bool, response: &mut Response) {
    if status.starts_with(['4', '5']) && response.content.is_empty() {
        let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
        response.content.insert("application/problem+json".to_owned(), RefOr::T(content));
    }
    let mut header = |name: &str, about: &str| {
        response.headers.insert(name.to_owned(), RefOr::T(text_header(about)));
    };
    header("X-Request-Id", "The name of the request: the caller's if it is sane.");
    if !matches!(status, "400" | "408" | "413" | "415" | "500" | "503") {
        header("RateLimit", "What the caller has left, by policy.");
        header("RateLimit-Policy", "How much there is in how many seconds.");
    }
    match status {
        "401" => header("WWW-Authenticate", "That a bearer token is wanted."),
        "429" | "503" => header("Retry-After", "After how many seconds to try again."),
        "304" => header("ETag", "The version that is known."),
        "200" if reads => header("ETag", "The version that is shown."),
        _ => {}
    }
}

fn parameter(name: &str, description: &str, pattern: Option<&str>) -> Parameter {
    let schema = ObjectBuilder::new().schema_type(Type::String).pattern(pattern).build();
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(description))
        .schema(Some(schema))
        .build()
}

/// Whether what is answered is a document of JSON.
fn is_document(operation: &Operation) -> bool {
    match operation.responses.responses.get("200") {
        Some(RefOr::T(response)) => response.content.contains_key("application/json"),
        _ => true,
    }
}

fn complete(operation: &mut Operation, kind: Kind) {
    let has_body = operation.request_body.is_some();
    // Files are written while they are sent: they have no tag.
    let tagged = kind == Kind::Read && is_document(operation);
    // What ends or changes something is sent again without harm; what makes something needs a key for that.
    let makes = kind == Kind::Post && operation.responses.responses.contains_key("201");
    let parameters = operation.parameters.get_or_insert_default();
    if makes && has_body {
        let what = "Sent again with the same key, the request does nothing new and gets the same answer, for 24 hours.";
        parameters.push(parameter("Idempotency-Key", what, Some("^[!#-\\[\\]-~]{1,255}$")).into());
    }
    if tagged {
        parameters.push(parameter("If-None-Match", "ETags that the caller has: 304 if one fits.", None).into());
    }
    let responses = &mut operation.responses.responses;
    if responses.contains_key("412") {
        let what = "The ETag of the version that the request counts on; any other is refused with 412.";
        parameters.push(parameter("If-Match", what, None).into());
    }
    let bad = match (makes, has_body) {
        (true, true) => "BadKeyedRequest",
        (_, true) => "BadRequest",
        (_, false) => "BadQuery",
    };
    let of_body = ["BodyTooSlow", "BodyTooLarge", "NotJson"].into_iter().filter(|_| has_body);
    let of_reads = ["NotModified"].into_iter().filter(|_| tagged);
    let always = ["Unauthorized", "TooManyRequests", "Failed", "Unavailable"];
    for name in always.into_iter().chain([bad]).chain(of_body).chain(of_reads) {
        let Some((_, status, _)) = SHARED.iter().find(|(shared, ..)| *shared == name) else { continue };
        responses.entry((*status).to_owned()).or_insert_with(|| RefOr::Ref(Ref::from_response_name(name)));
    }
    for (status, response) in responses.iter_mut() {
        if let RefOr::T(response) = response {
            finish(status, tagged, response);
        }
    }
    if let Some(RefOr::T(RequestBody { required, .. })) = &mut operation.request_body {
        *required = Some(Required::True);
    }
}

/// The whole document, as it is served.
pub fn document() -> &'static str {
    static DOCUMENT: LazyLock<String> = LazyLock::new(|| {
        // To a document of JSON first: its keys come in one order, whatever the description keeps them in.
        let value = serde_json::to_value(Description::openapi()).unwrap_or_default();
        let mut text = serde_json::to_string_pretty(&value).unwrap_or_default();
        text.push('\n');
        text
    });
    &DOCUMENT
}

/// `GET /api/openapi.json`
pub(in crate::web) async fn openapi() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "public, max-age=300")], document())
}
