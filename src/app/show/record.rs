//! How a DNS record is described; the document itself is `model::evidence::Record`.

use utoipa::ToSchema;

/// A DNS record to publish.
#[derive(ToSchema)]
#[schema(as = Record)]
#[expect(dead_code, reason = "read by the derive alone: the model does not know of descriptions")]
pub(super) struct RecordDocument {
    /// Full owner name without the trailing dot.
    #[schema(example = "_nameplate-challenge.support.acme.com")]
    name: String,
    /// What goes into a panel's host field: relative to the registered domain, `@` for the apex.
    #[schema(example = "_nameplate-challenge.support")]
    host: String,
    /// The type of the record.
    #[schema(example = "TXT")]
    kind: String,
    /// The value, as a zone file has it but for the quotes around a TXT.
    #[schema(example = "nameplate-verify=0123456789abcdef0123456789abcdef")]
    value: String,
    /// Whether it must stay after success.
    keep: bool,
}
