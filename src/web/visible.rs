//! Text from outside as a page shows it: what nobody can see, or what turns its neighbours around, is spelled out.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::model::hostname::invisible;

/// The longest text that is shown whole.
const LONGEST: usize = 500;
/// The most lines of one list that are shown.
const MOST: usize = 12;

/// The text with invisible characters as `[U+202E]`, cut where it is too long to be read.
pub(super) fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (n, c) in text.chars().enumerate() {
        if n == LONGEST {
            out.push('…');
            break;
        }
        // Line breaks and plain no-break spaces do nobody harm.
        if c != '\n' && c != '\u{a0}' && invisible(c).is_some() {
            out.push_str(&format!("[U+{:04X}]", u32::from(c)));
        } else {
            out.push(c);
        }
    }
    out
}

/// The beginning of a text that shares a line with others.
pub(super) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// A document with each of its texts made visible, whatever fields it has.
pub(super) fn document<T: Serialize + DeserializeOwned>(document: &T) -> serde_json::Result<T> {
    serde_json::from_value(each(serde_json::to_value(document)?))
}

fn each(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(visible(&text)),
        Value::Array(items) => {
            // Lists of texts come from outside; lists of objects are ours, and bounded where they are read.
            let most = if items.iter().all(Value::is_string) { MOST } else { usize::MAX };
            let more = items.len().saturating_sub(most);
            let mut shown: Vec<Value> = items.into_iter().take(most).map(each).collect();
            if more > 0 {
                shown.push(Value::String(format!("… and {more} more")));
            }
            Value::Array(shown)
        }
        Value::Object(fields) => fields.into_iter().map(|(name, value)| (visible(&name), each(value))).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_spelled_out_and_what_never_ends_is_cut() {
        assert_eq!(visible("a\0b\u{202e}c\u{200b}\r\n"), "a[U+0000]b[U+202E]c[U+200B][U+000D]\n");
        assert_eq!(visible("مثال ü 例"), "مثال ü 例");
        let whole = visible(&"x".repeat(10_000));
        assert_eq!((whole.chars().count(), whole.ends_with('…')), (501, true));
        assert_eq!((cut("äöü", 3), cut("äöü", 2)), ("äöü".to_owned(), "äö…".to_owned()));
        let many = serde_json::json!({ "seen": vec!["\u{7}"; 100] });
        let shown: Value = document(&many).unwrap();
        assert_eq!((shown["seen"].as_array().unwrap().len(), &shown["seen"][0]), (13, &serde_json::json!("[U+0007]")));
    }
}
