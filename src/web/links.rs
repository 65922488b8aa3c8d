//! Links, all built from `server.public_url`.

use super::state::WebState;
use crate::model::id::{DomainId, TenantId, TokenId};

impl WebState {
    /// The page of a domain.
    pub fn domain_page(&self, id: &DomainId) -> String {
        format!("{}/domains/{id}", self.settings.public_url)
    }

    pub(super) fn api_domain(&self, id: &DomainId) -> String {
        format!("{}/api/v1/domains/{id}", self.settings.public_url)
    }

    pub(super) fn api_token(&self, id: &TokenId) -> String {
        format!("{}/api/v1/tokens/{id}", self.settings.public_url)
    }

    pub(super) fn api_tenant(&self, id: &TenantId) -> String {
        format!("{}/api/v1/tenants/{id}", self.settings.public_url)
    }

    /// The next page of a list: the same question with another cursor.
    pub(super) fn next_page(&self, path: &str, question: &[(&str, &str)]) -> String {
        format!("{}{path}?{}", self.settings.public_url, query(question))
    }
}

/// A query string from names that need no encoding and values that may.
pub fn query(question: &[(&str, &str)]) -> String {
    let parts: Vec<String> = question.iter().map(|(key, value)| format!("{key}={}", encoded(value))).collect();
    parts.join("&")
}

/// Percent-encodes all but unreserved characters (RFC 3986 §2.3).
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn nothing_escapes_from_a_query_value() {
        assert_eq!(super::encoded("a b&c=ü"), "a%20b%26c%3D%C3%BC");
    }
}
