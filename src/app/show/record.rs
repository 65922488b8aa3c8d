//! How a DNS record, a DNS host and a view are described; the documents themselves are `model::evidence::{Record, DnsHost, View}`.

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

/// Who hosts a zone, as its name servers show it.
#[derive(ToSchema)]
#[schema(as = DnsHost)]
#[expect(dead_code, reason = "read by the derive alone: the model does not know of descriptions")]
pub(super) struct DnsHostDocument {
    /// The provider's name.
    #[schema(example = "Cloudflare")]
    provider: String,
    /// The zone there.
    #[schema(example = "acme.com")]
    zone: String,
    /// What to enter in its panel: one line for each record to publish, in their order.
    steps: Vec<String>,
}

/// What one server or resolver said, where they did not all say the same.
#[derive(ToSchema)]
#[schema(as = View)]
#[expect(dead_code, reason = "read by the derive alone: the model does not know of descriptions")]
pub(super) struct ViewDocument {
    /// Who.
    #[schema(example = "ns1.dns.example")]
    observer: String,
    /// What it said, in one line.
    #[schema(example = "CNAME old.example.net")]
    said: String,
    /// For how many seconds those who asked it may keep that; none where it said nothing.
    #[schema(required)]
    ttl: Option<u32>,
    /// Whether it is what is expected.
    as_expected: bool,
}
