//! The examples of docs/api.md, run in order through the router.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::http::Request;
use serde_json::Value;

use crate::support::web::Web;

/// One example: what is sent, and what comes.
struct Example {
    request: String,
    headers: Vec<(String, String)>,
    body: String,
    status: u16,
    expected: Option<Value>,
}

fn examples(page: &str) -> Vec<Example> {
    page.split("```http\n").skip(1).map(|rest| example(rest.split("\n```").next().unwrap())).collect()
}

fn example(block: &str) -> Example {
    let (sent, came) = block.split_once("\n=> ").unwrap_or_else(|| panic!("no answer in {block}"));
    let (head, body) = sent.trim_end().split_once("\n\n").unwrap_or((sent.trim_end(), ""));
    let mut lines = head.lines();
    let (status, expected) = came.split_once('\n').unwrap_or((came, ""));
    Example {
        request: lines.next().unwrap().to_owned(),
        headers: lines.map(|line| line.split_once(": ").unwrap()).map(|(n, v)| (n.to_owned(), v.to_owned())).collect(),
        body: body.to_owned(),
        status: status.trim().parse().unwrap(),
        expected: (!expected.trim().is_empty()).then(|| serde_json::from_str(expected).unwrap()),
    }
}

/// Whether `seen` has all that `expected` says; a text that ends in `…` stands for whatever begins so.
fn fits(expected: &Value, seen: &Value) -> Result<(), String> {
    match (expected, seen) {
        (Value::Object(expected), Value::Object(seen)) => expected.iter().try_for_each(|(key, value)| match seen.get(key) {
            Some(seen) => fits(value, seen).map_err(|e| format!("{key}: {e}")),
            None => Err(format!("{key} is missing")),
        }),
        (Value::Array(expected), Value::Array(seen)) if expected.len() == seen.len() => {
            expected.iter().zip(seen).try_for_each(|(expected, seen)| fits(expected, seen))
        }
        (Value::String(expected), Value::String(seen)) if expected.ends_with('…') => {
            let start = expected.trim_end_matches('…');
            if seen.starts_with(start) { Ok(()) } else { Err(format!("{seen:?} does not begin with {start:?}")) }
        }
        (expected, seen) if expected == seen => Ok(()),
        (expected, seen) => Err(format!("{seen} is not {expected}")),
    }
}

#[tokio::test]
async fn every_example_of_the_documentation_does_what_it_says() {
    let web = Web::new(97).await;
    let mut ids: BTreeMap<String, String> = BTreeMap::new();
    let all = examples(include_str!("../../docs/api.md"));
    assert!(all.len() >= 16, "{}", all.len());
    for example in &all {
        // An id such as `dom_…` is that of the example before.
        let path = ids.iter().fold(example.request.clone(), |path, (kind, id)| path.replace(&format!("{kind}_…"), id));
        let (method, path) = path.split_once(' ').unwrap();
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", format!("Bearer {}", web.operator))
            .header("content-type", "application/json");
        for (name, value) in &example.headers {
            request = request.header(name, value);
        }
        let answer = web.send(request.body(Body::from(example.body.clone())).unwrap()).await;
        assert_eq!(answer.status.as_u16(), example.status, "{}: {}", example.request, answer.body);
        let Some(expected) = &example.expected else {
            assert_eq!(answer.body, "", "{}", example.request);
            continue;
        };
        let seen = answer.json();
        fits(expected, &seen).unwrap_or_else(|e| panic!("{}: {e} in {seen:#}", example.request));
        if let Some((kind, _)) = seen["id"].as_str().and_then(|id| id.split_once('_')) {
            ids.insert(kind.to_owned(), seen["id"].as_str().unwrap().to_owned());
        }
    }
}

#[test]
fn the_reader_of_examples_sees_what_does_not_fit() {
    let of =
        |expected: &str, seen: &str| fits(&serde_json::from_str(expected).unwrap(), &serde_json::from_str(seen).unwrap());
    assert!(of(r#"{"a": "dom_…", "b": [1]}"#, r#"{"a": "dom_1", "b": [1], "c": 2}"#).is_ok());
    assert!(of(r#"{"a": "dom_…"}"#, r#"{"a": "ten_1"}"#).is_err());
    assert!(of(r#"{"a": [1, 2]}"#, r#"{"a": [1]}"#).is_err());
    assert!(of(r#"{"a": null}"#, r#"{}"#).is_err());
}
