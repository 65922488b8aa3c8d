//! The API's description: true to the routes, the same as the one in docs, readable as a page.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use nameplate::web::{PROBLEMS, ROUTES, openapi_document};
use serde_json::Value;

use crate::support::web::Web;

fn document() -> Value {
    serde_json::from_str(openapi_document()).unwrap()
}

/// Every operation: method and path → its description.
fn operations(document: &Value) -> BTreeMap<(String, String), &Value> {
    let mut all = BTreeMap::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in ["get", "put", "post", "delete", "patch", "head", "options"] {
            if let Some(operation) = item.get(method) {
                all.insert((method.to_owned(), path.clone()), operation);
            }
        }
    }
    all
}

/// A response, also one that is given by reference.
fn resolved<'v>(document: &'v Value, response: &'v Value) -> &'v Value {
    match response["$ref"].as_str() {
        Some(name) => document.pointer(name.trim_start_matches('#')).unwrap(),
        None => response,
    }
}

#[test]
fn every_route_is_described_and_every_description_is_a_route() {
    let document = document();
    let described: BTreeSet<_> = operations(&document).into_keys().collect();
    let routes: BTreeSet<_> = ROUTES
        .iter()
        .filter(|route| route.path.starts_with("/api/v1/"))
        .map(|route| (route.method.to_owned(), route.path.to_owned()))
        .collect();
    assert_eq!(described, routes);
}

/// `NAMEPLATE_REWRITE_DOCS=1 cargo test --test it api_description` writes it anew.
#[test]
fn the_description_in_the_docs_is_the_one_that_is_served() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/openapi.json");
    if std::env::var_os("NAMEPLATE_REWRITE_DOCS").is_some() {
        std::fs::write(&path, openapi_document()).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == openapi_document(),
        "docs/openapi.json is not what the handlers say; write it anew: NAMEPLATE_REWRITE_DOCS=1 cargo test --test it api_description"
    );
}

#[test]
fn the_description_is_whole() {
    let document = document();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"), "{}", document["openapi"]);
    let tags: BTreeSet<&str> =
        document["tags"].as_array().unwrap().iter().map(|tag| tag["name"].as_str().unwrap()).collect();
    let mut ids = BTreeSet::new();
    for ((method, path), operation) in operations(&document) {
        let place = format!("{method} {path}");
        assert!(ids.insert(operation["operationId"].as_str().unwrap()), "{place}: its id is taken");
        assert!(!operation["summary"].as_str().unwrap_or_default().is_empty(), "{place}");
        assert!(tags.contains(operation["tags"][0].as_str().unwrap()), "{place}");
        let responses: BTreeMap<&String, &Value> =
            operation["responses"].as_object().unwrap().iter().map(|(s, r)| (s, resolved(&document, r))).collect();
        for needed in ["401", "429", "503"] {
            assert!(responses.contains_key(&needed.to_owned()), "{place}: {needed}");
        }
        for (status, response) in &responses {
            if status.starts_with(['4', '5']) {
                let schema = &response["content"]["application/problem+json"]["schema"]["$ref"];
                assert_eq!(schema, "#/components/schemas/Problem", "{place} {status}");
            }
            assert!(response["headers"]["X-Request-Id"].is_object(), "{place} {status}");
        }
        let parameters: Vec<_> = operation["parameters"]
            .as_array()
            .unwrap()
            .iter()
            .map(|p| (p["in"].as_str(), p["name"].as_str().unwrap()))
            .collect();
        for name in path.split(['{', '}']).skip(1).step_by(2) {
            assert!(parameters.contains(&(Some("path"), name)), "{place}: {name}");
        }
        let makes = responses.contains_key(&"201".to_owned());
        assert_eq!(makes, parameters.contains(&(Some("header"), "Idempotency-Key")), "{place}");
    }
    // Whatever is referred to is there.
    let text = openapi_document();
    for name in text.split("#/components/schemas/").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(document["components"]["schemas"][name].is_object(), "no schema {name}");
    }
}

/// The codes that a description of an operation names.
fn codes(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2).filter(|code| !code.contains(' '))
}

#[test]
fn every_problem_is_documented_and_no_other() {
    let known: BTreeSet<&str> = PROBLEMS.iter().map(|(code, ..)| *code).collect();
    assert_eq!(known.len(), PROBLEMS.len(), "a code stands twice");
    let page = include_str!("../../docs/problems.md");
    let rows: BTreeMap<&str, &str> =
        page.lines().filter(|line| line.starts_with("| `")).map(|line| (line.split('`').nth(1).unwrap(), line)).collect();
    assert_eq!(rows.keys().copied().collect::<BTreeSet<_>>(), known);
    for (code, status, about) in PROBLEMS {
        assert_eq!(rows[code], format!("| `{code}` | {status} | {about} |"));
    }
    // What the handlers' descriptions name exists.
    let document = document();
    for ((method, path), operation) in operations(&document) {
        for (status, response) in operation["responses"].as_object().unwrap() {
            if status.starts_with(['4', '5']) {
                for code in codes(resolved(&document, response)["description"].as_str().unwrap())
                    .filter(|code| *code != "hostname_…")
                {
                    let found = PROBLEMS.iter().find(|(known, ..)| *known == code);
                    let (_, known, _) = found.unwrap_or_else(|| panic!("{method} {path}: no problem {code}"));
                    assert_eq!(known.to_string(), *status, "{method} {path}: {code}");
                }
            }
        }
    }
    // What the sources say is listed, and what is listed is said somewhere.
    let mut said = BTreeSet::new();
    for file in sources() {
        let text = std::fs::read_to_string(&file).unwrap();
        let text = text.split("#[cfg(test)]").next().unwrap();
        if !file.ends_with("src/web/problems.rs") {
            said.extend(known.iter().filter(|code| text.contains(&format!("\"{code}\""))).copied());
        }
        for call in
            ["Problem::new(", "Self::new(", "Problem::wrong(", "Self::wrong(", "Problem::refused(", "Problem::no_such("]
        {
            for rest in text.split(call).skip(1).filter(|_| file.to_string_lossy().contains("/web/")) {
                let head = rest.split(';').next().unwrap();
                let literals = head.split('"').skip(1).step_by(2);
                let is_code = |text: &&str| text.contains('_') && text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
                if let Some(code) = literals.into_iter().find(is_code).filter(|code| !known.contains(code)) {
                    assert!(
                        !head.contains(&format!("\"{code}\"")) || code == "expires_in" || code == "expires_before",
                        "{}: {code} is not listed",
                        file.display()
                    );
                }
            }
        }
    }
    let silent: Vec<_> = known.difference(&said).collect();
    assert!(silent.is_empty(), "nothing says {silent:?}");
}

fn sources() -> Vec<std::path::PathBuf> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                files.push(path);
            }
        }
    }
    files
}

#[tokio::test]
async fn the_description_is_served_and_rendered_without_scripts_or_the_network() {
    let web = Web::new(71).await;
    let served = web.api("", "GET", "/api/openapi.json", None).await;
    assert_eq!((served.status.as_u16(), served.header("content-type")), (200, "application/json"));
    assert_eq!(served.body, openapi_document());
    let mut pages = BTreeMap::new();
    for path in ["/api/docs", "/api/docs/documents", "/api/docs/problems"] {
        let page = web.api("", "GET", path, None).await;
        assert_eq!((page.status.as_u16(), page.header("content-type")), (200, "text/html; charset=utf-8"));
        assert!(page.header("content-security-policy").starts_with("default-src 'none'; style-src 'self'"));
        for forbidden in ["<script>", "style=", "http://", "https://", "onclick"] {
            assert!(!page.body.contains(forbidden), "{path}: {forbidden}");
        }
        assert!(page.body.len() < 72_000, "{path} has {} bytes", page.body.len());
        let known = axum::http::Request::get(path).header("if-none-match", page.header("etag"));
        assert_eq!(web.send(known.body(axum::body::Body::empty()).unwrap()).await.status, 304);
        pages.insert(path, page.body);
    }
    let document = document();
    for ((method, path), operation) in operations(&document) {
        let id = operation["operationId"].as_str().unwrap();
        assert!(pages["/api/docs"].contains(&format!("id=\"{id}\"")), "{method} {path}");
        let line = format!("<strong>{}</strong> <code>{path}</code>", method.to_uppercase());
        assert!(pages["/api/docs"].contains(&line), "{method} {path}");
    }
    for (code, ..) in PROBLEMS {
        assert!(pages["/api/docs/problems"].contains(&format!("problem-{code}")), "{code}");
    }
    // Every link leads to somewhere on a page, or to what is served.
    for (path, body) in &pages {
        for target in body.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            let (page, anchor) = target.split_once('#').unwrap_or((target, ""));
            match pages.get(if page.is_empty() { *path } else { page }) {
                Some(body) => assert!(anchor.is_empty() || body.contains(&format!("id=\"{anchor}\"")), "{path}: {target}"),
                None => assert_eq!(web.api("", "GET", target, None).await.status, 200, "{path}: {target}"),
            }
        }
    }
}

/// Where a value is not what its schema says; fields that the schema does not name are wrong too.
fn unfit(document: &Value, schema: &Value, value: &Value, place: &str, out: &mut Vec<String>) {
    let schema = resolved(document, schema);
    for all in schema["allOf"].as_array().into_iter().flatten() {
        unfit(document, all, value, place, out);
    }
    if let Some(several) = schema["oneOf"].as_array() {
        let fits = several.iter().any(|one| {
            let mut wrong = Vec::new();
            unfit(document, one, value, place, &mut wrong);
            wrong.is_empty()
        });
        if !fits {
            out.push(format!("{place}: {value} is none of {several:?}"));
        }
    }
    if schema["enum"].as_array().is_some_and(|words| !words.contains(value)) {
        out.push(format!("{place}: {value} is none of {}", schema["enum"]));
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let kinds = &schema["type"];
    if !(kinds.is_null() || kinds == kind || kinds.as_array().is_some_and(|kinds| kinds.iter().any(|k| k == kind))) {
        out.push(format!("{place}: {value} is no {kinds}"));
    }
    for (n, item) in value.as_array().into_iter().flatten().enumerate().filter(|_| schema["items"].is_object()) {
        unfit(document, &schema["items"], item, &format!("{place}/{n}"), out);
    }
    let Some(properties) = schema["properties"].as_object() else { return };
    for needed in schema["required"].as_array().into_iter().flatten() {
        if value.get(needed.as_str().unwrap()).is_none() {
            out.push(format!("{place}: {needed} is missing"));
        }
    }
    for (name, field) in value.as_object().into_iter().flatten() {
        match properties.get(name) {
            Some(schema) => unfit(document, schema, field, &format!("{place}/{name}"), out),
            None => out.push(format!("{place}: {name} is not described")),
        }
    }
}

#[tokio::test]
async fn the_story_of_a_name_is_told_as_it_is_described() {
    let web = Web::new(72).await;
    let (acme, token) = web.tenant("acme").await;
    let served = web.rig.claim(&acme, "a.acme.test").await;
    web.rig.publish(&served, "a.acme.test").await;
    web.rig.until_active(&served, Duration::from_secs(3600)).await;
    web.rig.claim(&acme, "b.acme.test").await;
    web.rig.pass(Duration::from_secs(20)).await;
    let document = document();
    let schema = &document["paths"]["/api/v1/explain"]["get"]["responses"]["200"]["content"]["application/json"]["schema"];
    assert!(schema["$ref"].is_string(), "{schema}");
    for token in [&web.operator, &token] {
        for name in ["a", "b"] {
            let told = web.api(token, "GET", &format!("/api/v1/explain?hostname={name}.acme.test"), None).await;
            let mut wrong = Vec::new();
            unfit(&document, schema, &told.json(), "", &mut wrong);
            assert!(told.status == 200 && wrong.is_empty(), "{}: {}", wrong.join("\n"), told.body);
        }
    }
}

#[test]
fn every_check_that_is_made_is_described() {
    let document = document();
    let described = document["components"]["schemas"]["CheckView"]["properties"]["check"]["enum"].as_array().unwrap();
    let words: BTreeSet<&str> = described.iter().map(|word| word.as_str().unwrap()).collect();
    assert_eq!(words, BTreeSet::from(["ownership", "routing", "caa", "delegation", "holding", "preflight"]));
}
