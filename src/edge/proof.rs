//! Proof to the origin that a request came through this edge: a signature under a secret that both know.
//!
//! What is signed, line by line: `v1`, the time, the method, the target, the host, the tenant's id and slug, the visitor's
//! address, the request's id. `docs/proxying.md` says how an origin checks it.

use aws_lc_rs::hmac;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::model::moment::Moment;
use crate::model::secret::Secret;

/// The header that carries it.
pub const SIGNATURE: HeaderName = HeaderName::from_static("x-nameplate-signature");

/// The headers whose values are signed, in this order.
const SIGNED: [&str; 5] = ["host", "x-tenant-id", "x-tenant-slug", "x-forwarded-for", "x-request-id"];

/// Signs for one origin.
pub struct Proof(hmac::Key);

impl Proof {
    /// Under the secret that the origin knows.
    pub fn new(secret: &Secret) -> Proof {
        Proof(hmac::Key::new(hmac::HMAC_SHA256, secret.expose()))
    }

    /// Signs a request whose headers are already the edge's own.
    pub fn sign(&self, headers: &mut HeaderMap, method: &str, target: &str, now: Moment) {
        let time = now.secs();
        let mut signed = format!("v1\n{time}\n{method}\n{target}");
        for name in SIGNED {
            signed.push('\n');
            signed.push_str(headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default());
        }
        let tag = hmac::sign(&self.0, signed.as_bytes());
        let hex: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        if let Ok(value) = HeaderValue::from_str(&format!("t={time},v1={hex}")) {
            headers.insert(SIGNATURE, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers() -> HeaderMap {
        let values = ["a.example.com", "ten_1", "acme", "192.0.2.7", "00ff"];
        SIGNED.into_iter().zip(values).map(|(n, v)| (HeaderName::from_static(n), HeaderValue::from_static(v))).collect()
    }

    fn signature(headers: &HeaderMap, method: &str, target: &str, at: i64) -> String {
        let mut headers = headers.clone();
        let secret = Secret::from("0123456789abcdef0123456789abcdef".to_owned());
        Proof::new(&secret).sign(&mut headers, method, target, Moment::from_secs(at));
        headers[SIGNATURE].to_str().unwrap().to_owned()
    }

    #[test]
    fn the_signature_is_the_one_that_the_page_tells_origins_to_compare() {
        // printf 'v1\n1767225600\nGET\n/a?b=c\na.example.com\nten_1\nacme\n192.0.2.7\n00ff' |
        //   openssl dgst -sha256 -hmac 0123456789abcdef0123456789abcdef
        let expected = "t=1767225600,v1=b15b6c769ba0a35be831fe3fb888942f09b96c9fc5402ab4676f0531f2b450b2";
        assert_eq!(signature(&headers(), "GET", "/a?b=c", 1_767_225_600), expected);
    }

    #[test]
    fn anything_that_is_signed_changes_it() {
        let before = signature(&headers(), "GET", "/a", 5);
        assert_ne!(before, signature(&headers(), "POST", "/a", 5));
        assert_ne!(before, signature(&headers(), "GET", "/b", 5));
        assert_ne!(before, signature(&headers(), "GET", "/a", 6));
        for name in SIGNED {
            let mut other = headers();
            other.insert(name, HeaderValue::from_static("another"));
            assert_ne!(before, signature(&other, "GET", "/a", 5), "{name}");
        }
    }
}
