//! The name of a request: in its answer, in the log, in its problem.

use axum::http::HeaderMap;

use crate::env::Env;

/// The header that carries it, both ways.
pub(super) const REQUEST_ID: &str = "x-request-id";

/// The name of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RequestId(String);

impl RequestId {
    /// The one that the caller gave, if it is sane; else a drawn one.
    pub(super) fn of(headers: &HeaderMap, env: &Env) -> Self {
        let mut given = headers.get_all(REQUEST_ID).iter();
        let one = given.next().filter(|_| given.next().is_none()).and_then(|value| value.to_str().ok());
        let sane = |text: &&str| {
            (1..=128).contains(&text.len())
                && text
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b':' | b'+' | b'/' | b'='))
        };
        RequestId(one.filter(sane).map_or_else(|| format!("req_{}", env.draw_hex(16)), str::to_owned))
    }

    /// The text.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn sane_names_are_taken_and_all_others_replaced() {
        let env = Env::real();
        let of = |values: &[&[u8]]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(REQUEST_ID, HeaderValue::from_bytes(value).unwrap());
            }
            RequestId::of(&headers, &env).0
        };
        assert_eq!(of(&[b"0af7651916cd43dd-8448:eb"]), "0af7651916cd43dd-8448:eb");
        let long = [b'a'; 129];
        for insane in [&[] as &[&[u8]], &[b""], &[b"a b"], &[b"<script>"], &[b"\xff"], &[b"a", b"b"], &[&long]] {
            let minted = of(insane);
            assert!(minted.starts_with("req_") && minted.len() == 36, "{minted}");
        }
        assert_ne!(of(&[]), of(&[]));
    }
}
