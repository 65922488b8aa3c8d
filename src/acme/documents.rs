//! The CA's documents, read from the wire: orders, authorizations, the directory.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::authority::{
    Authorization, AuthorizationStatus, Challenge, ChallengeStatus, DirectoryFacts, OrderStatus, OrderView,
};
use super::problem::ProblemDoc;
use crate::model::hostname::Hostname;
use crate::model::moment::Moment;
use crate::model::renewal::{Advice, Window};

/// A document that is not what it should be.
#[derive(Debug, thiserror::Error)]
pub(super) enum BadDocument {
    #[error("not the JSON expected")]
    Json(#[from] serde_json::Error),
    #[error("the challenge's token {0:?} is not base64url (RFC 8555 §8.3)")]
    Token(String),
    #[error("a window of renewal from {0:?} to {1:?}, of which one is no time (RFC 3339)")]
    Window(String, String),
    #[error("an identifier of type {0:?} where a DNS name was ordered")]
    Identifier(String),
}

fn moment(text: Option<&String>) -> Option<Moment> {
    let at = OffsetDateTime::parse(text?, &Rfc3339).ok()?;
    i64::try_from(at.unix_timestamp_nanos() / 1000).ok().map(Moment::from_micros)
}

#[derive(Deserialize)]
struct OrderDoc {
    status: OrderStatus,
    #[serde(default)]
    authorizations: Vec<String>,
    finalize: String,
    certificate: Option<String>,
    error: Option<Value>,
    expires: Option<String>,
    replaces: Option<String>,
}

/// An order, and the certificate it replaces.
pub(super) fn order(body: &[u8], retry_after: Option<Duration>) -> Result<(OrderView, Option<String>), BadDocument> {
    let doc: OrderDoc = serde_json::from_slice(body)?;
    let view = OrderView {
        status: doc.status,
        expires: moment(doc.expires.as_ref()),
        authorizations: doc.authorizations,
        finalize: doc.finalize,
        certificate: doc.certificate,
        problem: doc.error.and_then(ProblemDoc::new),
        retry_after,
    };
    Ok((view, doc.replaces))
}

#[derive(Deserialize)]
struct AuthorizationDoc {
    identifier: IdentifierDoc,
    status: AuthorizationStatus,
    #[serde(default)]
    challenges: Vec<ChallengeDoc>,
    expires: Option<String>,
}

#[derive(Deserialize)]
struct IdentifierDoc {
    #[serde(rename = "type")]
    kind: String,
    value: String,
}

#[derive(Deserialize)]
struct ChallengeDoc {
    #[serde(rename = "type")]
    kind: String,
    url: String,
    #[serde(default)]
    token: String,
    status: ChallengeStatus,
    error: Option<Value>,
}

/// An authorization, with the key authorization that `thumbprint` gives (RFC 8555 §8.1).
pub(super) fn authorization(
    body: &[u8],
    thumbprint: &str,
    retry_after: Option<Duration>,
) -> Result<Authorization, BadDocument> {
    let doc: AuthorizationDoc = serde_json::from_slice(body)?;
    if doc.identifier.kind != "dns" {
        return Err(BadDocument::Identifier(doc.identifier.kind));
    }
    let problem = doc.challenges.iter().find_map(|c| c.error.clone()).and_then(ProblemDoc::new);
    let http01 = doc.challenges.into_iter().find(|c| c.kind == "http-01").map(|c| challenge(c, thumbprint)).transpose()?;
    Ok(Authorization {
        name: Hostname::trusted(&doc.identifier.value),
        status: doc.status,
        http01,
        problem,
        expires: moment(doc.expires.as_ref()),
        retry_after,
    })
}

fn challenge(doc: ChallengeDoc, thumbprint: &str) -> Result<Challenge, BadDocument> {
    // The token becomes part of a path that edges serve, so it is held to its alphabet.
    let clean = doc.token.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    if !clean || !(1..=256).contains(&doc.token.len()) {
        return Err(BadDocument::Token(doc.token.chars().take(64).collect()));
    }
    Ok(Challenge {
        key_authorization: format!("{}.{thumbprint}", doc.token),
        url: doc.url,
        token: doc.token,
        status: doc.status,
        problem: doc.error.and_then(ProblemDoc::new),
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DirectoryDoc {
    #[serde(rename = "newNonce")]
    _new_nonce: String,
    #[serde(rename = "newAccount")]
    _new_account: String,
    #[serde(rename = "newOrder")]
    _new_order: String,
    renewal_info: Option<String>,
    #[serde(default)]
    meta: Meta,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    #[serde(default)]
    caa_identities: Vec<String>,
    terms_of_service: Option<String>,
    #[serde(default)]
    external_account_required: bool,
    #[serde(default)]
    profiles: BTreeMap<String, String>,
}

/// Where the directory has renewal windows (RFC 9773 §3); nothing where it has none.
pub(super) fn renewal_url(body: &[u8]) -> Result<Option<String>, BadDocument> {
    Ok(serde_json::from_slice::<DirectoryDoc>(body)?.renewal_info)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RenewalDoc {
    suggested_window: WindowDoc,
    #[serde(rename = "explanationURL")]
    explanation_url: Option<Value>,
}

#[derive(Deserialize)]
struct WindowDoc {
    start: String,
    end: String,
}

/// A renewal window (RFC 9773 §4.2). What explains it is shown to people as a link, so it is held to what a link may be.
pub(super) fn renewal(body: &[u8], retry_after: Option<Duration>) -> Result<Advice, BadDocument> {
    let doc: RenewalDoc = serde_json::from_slice(body)?;
    let WindowDoc { start, end } = doc.suggested_window;
    let short = |text: &str| text.chars().take(64).collect::<String>();
    let (Some(from), Some(until)) = (moment(Some(&start)), moment(Some(&end))) else {
        return Err(BadDocument::Window(short(&start), short(&end)));
    };
    let explanation = doc.explanation_url.and_then(|url| url.as_str().map(str::to_owned)).filter(|url| is_link(url));
    Ok(Advice { window: Window { start: from, end: until }, explanation, retry_after })
}

/// `https`, printable ASCII, not endless.
fn is_link(url: &str) -> bool {
    let clean = url.bytes().all(|b| b.is_ascii_graphic() && !b"\"'<>`\\".contains(&b));
    url.starts_with("https://") && url.len() > "https://".len() && url.len() <= 2_000 && clean
}

/// A directory.
pub(super) fn directory(body: &[u8]) -> Result<DirectoryFacts, BadDocument> {
    let doc: DirectoryDoc = serde_json::from_slice(body)?;
    Ok(DirectoryFacts {
        caa_identities: doc.meta.caa_identities,
        terms_of_service: doc.meta.terms_of_service,
        external_account_required: doc.meta.external_account_required,
        profiles: doc.meta.profiles,
        renewal_info: doc.renewal_info.is_some(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_order_is_read_with_what_the_library_drops() {
        let body = json!({
            "status": "invalid", "expires": "2027-01-05T14:09:07.5Z", "authorizations": ["https://ca/a/1"], "finalize": "https://ca/f/1",
            "error": {"type": "urn:ietf:params:acme:error:caa", "detail": "no", "instance": "kept"}, "replaces": "aa.bb",
        });
        let (view, replaces) = order(body.to_string().as_bytes(), Some(Duration::from_secs(3))).unwrap();
        assert_eq!(
            (view.status, view.expires, replaces.as_deref()),
            (OrderStatus::Invalid, Some(Moment::from_micros(1_799_158_147_500_000)), Some("aa.bb"))
        );
        assert_eq!(view.problem.unwrap().json()["instance"], "kept");
    }

    #[test]
    fn an_authorization_gives_the_answer_to_serve_and_refuses_tokens_that_are_paths() {
        let body = |token: &str| {
            json!({
                "status": "pending", "identifier": {"type": "dns", "value": "Support.Acme.test"},
                "challenges": [
                    {"type": "dns-01", "url": "https://ca/c/1", "token": "x", "status": "pending"},
                    {"type": "http-01", "url": "https://ca/c/2", "token": token, "status": "pending"},
                ],
            })
            .to_string()
        };
        let read = authorization(body("tok-en_1").as_bytes(), "thumb", None).unwrap();
        let http01 = read.http01.unwrap();
        assert_eq!((read.name.as_str(), http01.key_authorization.as_str()), ("support.acme.test", "tok-en_1.thumb"));
        for bad in ["", "../../etc", "a.b", "a b", &"a".repeat(257)] {
            assert!(matches!(authorization(body(bad).as_bytes(), "thumb", None), Err(BadDocument::Token(_))), "{bad:?}");
        }
    }

    #[test]
    fn a_directory_is_read_for_what_it_promises() {
        let bare = json!({"newNonce": "n", "newAccount": "a", "newOrder": "o"});
        assert_eq!(directory(bare.to_string().as_bytes()).unwrap(), DirectoryFacts::default());
        let full = json!({
            "newNonce": "n", "newAccount": "a", "newOrder": "o", "renewalInfo": "r",
            "meta": {"caaIdentities": ["ca.test"], "externalAccountRequired": true, "termsOfService": "t", "profiles": {"short": "6 d"}},
        });
        let facts = directory(full.to_string().as_bytes()).unwrap();
        assert_eq!((facts.caa_identities.len(), facts.external_account_required, facts.renewal_info), (1, true, true));
        assert!(directory(b"{}").is_err());
    }

    #[test]
    fn a_renewal_window_is_read_as_the_rfc_writes_it() {
        let body = br#"{"suggestedWindow": {"start": "2025-01-02T04:00:00Z", "end": "2025-01-03T05:00:00.5+01:00"},
            "explanationURL": "https://acme.example.com/docs/ari"}"#;
        let advice = renewal(body, Some(Duration::from_secs(21_600))).unwrap();
        assert_eq!(advice.window.start.rfc3339(), "2025-01-02T04:00:00Z");
        assert_eq!(advice.window.end.micros() - advice.window.start.micros(), 86_400_500_000);
        assert_eq!(advice.explanation.as_deref(), Some("https://acme.example.com/docs/ari"));
        assert_eq!(advice.retry_after, Some(Duration::from_secs(21_600)));
        for body in [
            r#"{"suggestedWindow": {"start": "2025-01-02", "end": "soon"}}"#,
            r#"{"suggestedWindow": {"start": "2025-01-02T04:00:00Z"}}"#,
            r#"{"suggestedWindow": {"start": "2025-01-02T04:00:00Z", "end": 5}}"#,
            r#"{"suggestedWindow": null}"#,
            "[]",
            "<html>",
            "",
            r#"{"suggestedWindow": {"start": "2025-01-02T04:"#,
        ] {
            assert!(renewal(body.as_bytes(), None).is_err(), "{body}");
        }
        // What cannot be a link is no explanation, and no reason to doubt the window.
        for url in [
            "\"javascript:alert(1)\"",
            "\"http://a.test\"",
            "\"https://\"",
            "\"https://a.test/\\n\"",
            "7",
            "null",
            "\"https://a.test/<b>\"",
        ] {
            let body = format!(
                "{{\"suggestedWindow\": {{\"start\": \"2025-01-02T04:00:00Z\", \"end\": \"2025-01-03T04:00:00Z\"}}, \"explanationURL\": {url}}}"
            );
            assert_eq!(renewal(body.as_bytes(), None).unwrap().explanation, None, "{url}");
        }
    }

    proptest! {
        #[test]
        fn any_renewal_document_is_survived(body in prop::collection::vec(any::<u8>(), 0..200), start in ".{0,40}", end in ".{0,40}") {
            let _ = renewal(&body, None);
            let doc = json!({"suggestedWindow": {"start": start, "end": end}}).to_string();
            let _ = renewal(doc.as_bytes(), None);
        }
    }

    proptest! {
        #[test]
        fn junk_is_refused_without_panic(junk in ".{0,80}") {
            prop_assert!(order(junk.as_bytes(), None).is_err());
            prop_assert!(authorization(junk.as_bytes(), "t", None).is_err());
            prop_assert!(directory(junk.as_bytes()).is_err());
        }
    }
}
