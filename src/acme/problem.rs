//! Problem documents (RFC 7807, RFC 8555 §6.7), kept whole.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::evidence::Actor;

const ACME: &str = "urn:ietf:params:acme:error:";

/// Longer texts are cut: a sentence for people, or a link with a token in it, is shorter.
const LONGEST_TEXT: usize = 2000;
/// More parts than any order has names.
const MOST_PARTS: usize = 100;
/// Problems with subproblems with identifiers lie within.
const DEEPEST: usize = 6;

/// A problem document as the CA wrote it: stored, shown and judged whole. Only what no sane CA writes is cut, because rows and
/// pages carry it: texts of more than 2,000 characters, more than 100 parts, more than six levels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProblemDoc(Value);

impl ProblemDoc {
    /// Takes a JSON object; anything else is no problem document.
    pub fn new(json: Value) -> Option<Self> {
        json.is_object().then(|| ProblemDoc(bounded(json, DEEPEST)))
    }

    pub(super) fn from_body(body: &[u8]) -> Option<Self> {
        serde_json::from_slice(body).ok().and_then(Self::new)
    }

    /// The whole document.
    pub fn json(&self) -> &Value {
        &self.0
    }

    /// The type without the ACME prefix: `rateLimited`. Empty when it has none of ACME's.
    pub fn acme_type(&self) -> &str {
        self.text("type").strip_prefix(ACME).unwrap_or_default()
    }

    /// The CA's explanation.
    pub fn detail(&self) -> &str {
        self.text("detail")
    }

    /// Problems of single names.
    pub fn subproblems(&self) -> impl Iterator<Item = ProblemDoc> {
        self.0.get("subproblems").and_then(Value::as_array).into_iter().flatten().cloned().filter_map(Self::new)
    }

    /// Whose move it is when this is why a challenge or an order became invalid.
    pub fn acts(&self) -> Actor {
        match self.acme_type() {
            "caa" | "connection" | "dns" | "incorrectResponse" | "tls" | "unauthorized" => Actor::Tenant,
            "rateLimited" | "serverInternal" => Actor::Ca,
            _ => Actor::Platform,
        }
    }

    fn text(&self, member: &str) -> &str {
        self.0.get(member).and_then(Value::as_str).unwrap_or_default()
    }
}

fn bounded(json: Value, levels: usize) -> Value {
    match json {
        Value::String(text) if text.chars().nth(LONGEST_TEXT).is_some() => {
            Value::String(text.chars().take(LONGEST_TEXT).chain(['…']).collect())
        }
        Value::Array(_) | Value::Object(_) if levels == 0 => Value::Null,
        Value::Array(parts) => parts.into_iter().take(MOST_PARTS).map(|part| bounded(part, levels - 1)).collect(),
        Value::Object(members) => {
            let few = members.into_iter().take(MOST_PARTS);
            let kept = few.map(|(name, value)| (name.chars().take(LONGEST_TEXT).collect(), bounded(value, levels - 1)));
            Value::Object(kept.collect())
        }
        other => other,
    }
}

impl fmt::Display for ProblemDoc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, detail) = (shown(self.text("type")), shown(self.detail()));
        match (kind.is_empty(), detail.is_empty()) {
            (false, false) => write!(f, "{kind}: {detail}"),
            (false, true) => f.write_str(&kind),
            (true, false) => f.write_str(&detail),
            (true, true) => f.write_str("a problem document without type and detail"),
        }
    }
}

/// As people read it: quotes stay quotes, and what cannot be printed is written out.
fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '"' | '\'' | '\\') { shown.push(c) } else { shown.extend(c.escape_debug()) }
    }
    shown
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_is_kept_whole_and_read_in_parts() {
        let json = json!({
            "type": "urn:ietf:params:acme:error:compound", "detail": "two\nnames", "status": 403, "instance": "/x",
            "subproblems": [{"type": "urn:ietf:params:acme:error:caa", "identifier": {"type": "dns", "value": "a.test"}}, 7],
        });
        let doc = ProblemDoc::new(json.clone()).unwrap();
        assert_eq!(doc.json(), &json);
        assert_eq!((doc.acme_type(), doc.subproblems().count()), ("compound", 1));
        assert_eq!(doc.subproblems().next().unwrap().acts(), Actor::Tenant);
        assert_eq!(doc.to_string(), "urn:ietf:params:acme:error:compound: two\\nnames");
        assert_eq!(ProblemDoc::new(json!("rateLimited")), None);
    }

    #[test]
    fn quotes_are_read_as_quotes() {
        let doc = ProblemDoc::new(json!({"detail": "for \"acme.test\" and 'more'\u{202e}\r"})).unwrap();
        assert_eq!(doc.to_string(), "for \"acme.test\" and 'more'\\u{202e}\\r");
    }

    #[test]
    fn what_no_sane_ca_writes_is_cut() {
        let part = json!({"type": "urn:ietf:params:acme:error:caa", "detail": "x".repeat(10_000)});
        let mut deep = json!(1);
        for _ in 0..100 {
            deep = json!([deep]);
        }
        let doc =
            ProblemDoc::new(json!({"detail": "é".repeat(300_000), "subproblems": vec![part; 1000], "more": deep})).unwrap();
        assert_eq!((doc.detail().chars().count(), doc.subproblems().count()), (2001, 100));
        assert!(doc.json().to_string().len() < 300_000 && doc.json().to_string().contains("[[[[null]]]]"));
    }

    proptest! {
        #[test]
        fn junk_is_no_problem_document_and_never_panics(junk in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Some(doc) = ProblemDoc::from_body(&junk) {
                prop_assert!(!doc.to_string().is_empty());
            }
        }
    }
}
