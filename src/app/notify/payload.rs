//! The document that a webhook gets: `type`, `timestamp` and `data`, as the Standard Webhooks scheme has it.

use serde_json::{Value, json};

use crate::app::show;
use crate::store::views::EventRow;

/// The body of a delivery. It is the same at every try.
pub(super) fn body(event: EventRow, hostname: Option<String>) -> Vec<u8> {
    let (kind, at) = (event.kind.clone(), event.at.rfc3339());
    let mut data = serde_json::to_value(show::event_view(event)).unwrap_or_default();
    if let (Some(name), Value::Object(fields)) = (hostname, &mut data) {
        fields.insert("hostname".to_owned(), name.into());
    }
    json!({ "type": kind, "timestamp": at, "data": data }).to_string().into_bytes()
}
