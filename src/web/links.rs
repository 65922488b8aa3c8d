//! Links, all built from `server.public_url`.

use super::state::WebState;
use crate::model::id::{DomainId, ImportId, TenantId, TokenId};
use crate::model::percent::encoded;

impl WebState {
    /// The page of a domain.
    pub fn domain_page(&self, id: &DomainId) -> String {
        format!("{}/domains/{id}", self.settings.public_url)
    }

    /// The link that signs a tenant's admin in.
    pub(super) fn portal_link(&self, text: &str) -> String {
        format!("{}/enter/{text}", self.settings.public_url)
    }

    /// The page for whoever owns the DNS.
    pub(super) fn hand_off_link(&self, text: &str) -> String {
        format!("{}/hand-off/{text}", self.settings.public_url)
    }

    pub(super) fn api_domain(&self, id: &DomainId) -> String {
        format!("{}/api/v1/domains/{id}", self.settings.public_url)
    }

    /// The page of an import.
    pub(super) fn import_page(&self, id: &ImportId) -> String {
        format!("{}/imports/{id}", self.settings.public_url)
    }

    pub(super) fn api_import(&self, id: &ImportId) -> String {
        format!("{}/api/v1/imports/{id}", self.settings.public_url)
    }

    pub(super) fn api_reissue(&self, id: &str) -> String {
        format!("{}/api/v1/reissues/{id}", self.settings.public_url)
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

/// Where operators sign in to come back to the path `next`.
pub(super) fn sign_in_for(next: &str) -> String {
    if next == "/" { "/operator/sign-in".to_owned() } else { format!("/operator/sign-in?{}", query(&[("next", next)])) }
}

/// The path to go on to after signing in, if it is one of ours: a browser would read much else as another site.
pub(super) fn local_path(next: &str) -> Option<&str> {
    let plain = next.bytes().all(|b| b.is_ascii_graphic() && b != b'\\');
    let local = next.starts_with('/') && !next.contains("//") && next.len() < 500;
    (plain && local).then_some(next)
}

/// A query string from names that need no encoding and values that may.
pub fn query(question: &[(&str, &str)]) -> String {
    let parts: Vec<String> = question.iter().map(|(key, value)| format!("{key}={}", encoded(value))).collect();
    parts.join("&")
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_paths_of_ours_are_gone_on_to() {
        for next in ["/", "/domains/dom_1?x=1", "/operator"] {
            assert_eq!(super::local_path(next), Some(next));
        }
        let tricks = [
            "",
            "//evil.example",
            "/\\evil.example",
            "\\\\evil.example",
            "https://evil.example",
            "/a//b",
            "/\t/evil",
            "/\u{e9}",
        ];
        for next in tricks {
            assert_eq!(super::local_path(next), None, "{next:?}");
        }
    }

    #[test]
    fn nothing_escapes_from_a_query_value() {
        assert_eq!(super::encoded("a b&c=ü"), "a%20b%26c%3D%C3%BC");
    }
}
