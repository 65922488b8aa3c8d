//! The description as a page to read: rendered here from the document itself, without a script and without the network.

use std::sync::OnceLock;

use askama::Template;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use super::description::document;
use crate::web::PROBLEMS;
use crate::web::problem::{Problem, html};
use crate::web::texts::api as a;

/// One row of a table: a parameter, a field, a header.
struct Row {
    name: String,
    kind: String,
    required: bool,
    about: String,
}

/// One status that an operation answers with.
struct Answer {
    status: String,
    about: String,
    /// What comes before the document's name.
    form: &'static str,
    document: String,
}

/// One operation.
struct Operation {
    id: String,
    method: String,
    path: String,
    summary: String,
    about: Vec<String>,
    parameters: Vec<Row>,
    body: Option<(String, Vec<Row>, String)>,
    answers: Vec<Answer>,
}

/// The operations of one resource.
struct Group {
    name: String,
    about: String,
    operations: Vec<Operation>,
}

/// One document.
struct Shape {
    name: String,
    about: String,
    fields: Vec<Row>,
}

/// The page of the operations.
#[derive(Template)]
#[template(path = "api_docs.html")]
struct DocsPage {
    about: Vec<String>,
    groups: Vec<Group>,
    common: Vec<Answer>,
}

/// The page of the documents that they give out and take in.
#[derive(Template)]
#[template(path = "api_documents.html")]
struct DocumentsPage {
    shapes: Vec<Shape>,
}

/// The page of the problems.
#[derive(Template)]
#[template(path = "api_problems.html")]
struct ProblemsPage<'a> {
    problems: &'a [(&'a str, u16, &'a str)],
}

/// What the schema of a page of a list is called, before the name of its items.
const PAGE: &str = "Page_";

fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn paragraphs(text: &str) -> Vec<String> {
    text.split("\n\n").map(|part| part.replace('\n', " ").trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

/// What a schema is, in a few words.
fn kind_of(schema: &Value) -> String {
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        return name.rsplit('/').next().unwrap_or_default().to_owned();
    }
    for several in ["oneOf", "anyOf", "allOf"] {
        if let Some(parts) = schema.get(several).and_then(Value::as_array) {
            return parts.iter().map(kind_of).collect::<Vec<_>>().join(" or ");
        }
    }
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        return words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" | ");
    }
    let format = schema.get("format").and_then(Value::as_str);
    let name = |kind: &str| match (kind, format) {
        ("array", _) => format!("list of {}", schema.get("items").map(kind_of).unwrap_or_default()),
        ("string", Some("date-time")) => "time".to_owned(),
        ("string", Some("uri")) => "URL".to_owned(),
        ("string", _) => "text".to_owned(),
        ("integer", _) => "number".to_owned(),
        ("boolean", _) => "true or false".to_owned(),
        (other, _) => other.to_owned(),
    };
    match schema.get("type") {
        Some(Value::String(one)) => name(one),
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).map(name).collect::<Vec<_>>().join(" or "),
        _ => "any JSON".to_owned(),
    }
}

/// The fields of a schema, those of its parts included.
fn fields(schema: &Value, components: &Value) -> Vec<Row> {
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        let found = components.pointer(name.trim_start_matches("#/components"));
        return found.map(|schema| fields(schema, components)).unwrap_or_default();
    }
    if let Some(parts) = schema.get("allOf").and_then(Value::as_array) {
        return parts.iter().flat_map(|part| fields(part, components)).collect();
    }
    let needed: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let all = schema.get("properties").and_then(Value::as_object);
    let row = |(name, schema): (&String, &Value)| Row {
        name: name.clone(),
        kind: kind_of(schema),
        required: needed.contains(&name.as_str()),
        about: text(schema, "description"),
    };
    all.into_iter().flatten().map(row).collect()
}

fn operation(method: &str, path: &str, described: &Value, components: &Value) -> Operation {
    let parameters = described.get("parameters").and_then(Value::as_array).into_iter().flatten();
    let parameter = |p: &Value| Row {
        name: text(p, "name"),
        kind: format!("{}, {}", text(p, "in"), p.get("schema").map(kind_of).unwrap_or_default()),
        required: p.get("required").and_then(Value::as_bool).unwrap_or(false),
        about: text(p, "description"),
    };
    let body = described.pointer("/requestBody/content/application~1json/schema").map(|schema| {
        let of_component = schema.get("$ref").and_then(Value::as_str);
        let named = of_component.and_then(|name| components.pointer(name.trim_start_matches("#/components")));
        let example = named.unwrap_or(schema).get("example");
        let example = example.and_then(|e| serde_json::to_string_pretty(e).ok()).unwrap_or_default();
        (kind_of(schema), fields(schema, components), example)
    });
    let answers = described.get("responses").and_then(Value::as_object).into_iter().flatten();
    let answer = |(status, response): (&String, &Value)| {
        let named = response.pointer("/content/application~1json/schema/$ref").and_then(Value::as_str).unwrap_or_default();
        let document = named.rsplit('/').next().unwrap_or_default().to_owned();
        let (form, document) = match document.strip_prefix(PAGE) {
            Some(items) => ("A page of", items.to_owned()),
            None => ("", document),
        };
        Answer { status: status.clone(), about: text(response, "description"), form, document }
    };
    Operation {
        id: text(described, "operationId"),
        method: method.to_uppercase(),
        path: path.to_owned(),
        summary: text(described, "summary"),
        about: paragraphs(&text(described, "description")),
        parameters: parameters.map(parameter).collect(),
        body,
        // What many share is given by reference, and said once.
        answers: answers.filter(|(_, response)| response.get("$ref").is_none()).map(answer).collect(),
    }
}

fn whole() -> Value {
    serde_json::from_str(document()).unwrap_or_default()
}

fn operations_page() -> DocsPage {
    let whole = whole();
    let components = whole.get("components").cloned().unwrap_or_default();
    let paths: Vec<(&String, &Value)> = whole.get("paths").and_then(Value::as_object).into_iter().flatten().collect();
    let tags = whole.get("tags").and_then(Value::as_array).into_iter().flatten();
    let group = |tag: &Value| {
        let name = text(tag, "name");
        let belongs = |described: &Value| described.pointer("/tags/0").and_then(Value::as_str) == Some(&name);
        let operations = paths.iter().flat_map(|(path, item)| {
            ["get", "post", "patch", "delete"].into_iter().filter_map(|method| {
                let described = item.get(method).filter(|described| belongs(described))?;
                Some(operation(method, path, described, &components))
            })
        });
        Group { about: text(tag, "description"), operations: operations.collect(), name: name.clone() }
    };
    let about = whole.pointer("/info/description").and_then(Value::as_str).unwrap_or_default().replace('`', "");
    let shared = components.get("responses").and_then(Value::as_object).into_iter().flatten();
    let mut common: Vec<Answer> = shared
        .map(|(name, response)| Answer {
            status: name.clone(),
            about: text(response, "description"),
            form: "",
            document: String::new(),
        })
        .collect();
    for answer in &mut common {
        let named = format!("#/components/responses/{}", answer.status);
        let all = paths.iter().flat_map(|(_, item)| item.as_object().into_iter().flatten());
        let given =
            all.flat_map(|(_, described)| described.get("responses").and_then(Value::as_object).into_iter().flatten());
        let status = given.filter(|(_, response)| text(response, "$ref") == named).map(|(status, _)| status.clone()).next();
        answer.status = status.unwrap_or_default();
    }
    common.sort_by(|a, b| (&a.status, a.about.len()).cmp(&(&b.status, b.about.len())));
    DocsPage { about: paragraphs(&about), groups: tags.map(group).collect(), common }
}

fn documents_page() -> DocumentsPage {
    let whole = whole();
    let components = whole.get("components").cloned().unwrap_or_default();
    let schemas = components.get("schemas").and_then(Value::as_object).into_iter().flatten();
    let shape = |(name, schema): (&String, &Value)| Shape {
        name: name.clone(),
        about: text(schema, "description"),
        fields: fields(schema, &components),
    };
    // A page of a list is said once, in words.
    DocumentsPage { shapes: schemas.filter(|(name, _)| !name.starts_with(PAGE)).map(shape).collect() }
}

/// A page that never changes while this version runs is rendered once.
fn rendered(kept: &'static OnceLock<String>, page: impl FnOnce() -> Result<String, Problem>) -> Result<Response, Problem> {
    let text = match kept.get() {
        Some(text) => text,
        None => {
            let rendered = page()?;
            kept.get_or_init(|| rendered)
        }
    };
    let headers = [(header::CONTENT_TYPE, "text/html; charset=utf-8"), (header::CACHE_CONTROL, "public, max-age=300")];
    Ok((headers, text.as_str()).into_response())
}

/// `GET /api/docs`
pub(in crate::web) async fn show_docs() -> Result<Response, Problem> {
    static PAGE: OnceLock<String> = OnceLock::new();
    rendered(&PAGE, || Ok(html(&operations_page())?.0))
}

/// `GET /api/docs/documents`
pub(in crate::web) async fn show_documents() -> Result<Response, Problem> {
    static PAGE: OnceLock<String> = OnceLock::new();
    rendered(&PAGE, || Ok(html(&documents_page())?.0))
}

/// `GET /api/docs/problems`
pub(in crate::web) async fn show_problems() -> Result<Response, Problem> {
    static PAGE: OnceLock<String> = OnceLock::new();
    rendered(&PAGE, || Ok(html(&ProblemsPage { problems: PROBLEMS })?.0))
}

/// `GET /assets/api-docs.css`
pub(in crate::web) async fn style() -> impl IntoResponse {
    let headers = [(header::CONTENT_TYPE, "text/css; charset=utf-8"), (header::CACHE_CONTROL, "public, max-age=300")];
    (headers, include_str!("../../../templates/api_docs.css"))
}
