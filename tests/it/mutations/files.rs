//! Readers of certificates, keys, signed messages and stored documents.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use nameplate::acme::{ProblemDoc, chain, imported};
use nameplate::env::manual::Hand;
use nameplate::feed::join::JoinToken;
use nameplate::feed::wire::{self, Message};
use nameplate::model::evidence::Evidence;
use nameplate::model::feed::{ChallengeEntry, Deltas, Position};
use nameplate::model::hostname::Hostname;
use nameplate::model::moment::Moment;
use nameplate::model::secret::Secret;
use nameplate::sandbox::ca::{Jws, csr};
use nameplate::vault::MasterKey;
use nameplate::vault::signing::FeedSigner;
use rcgen::{CertificateParams, DistinguishedName, ExtendedKeyUsagePurpose, KeyPair};

use super::Reader;

const NOW: Moment = Moment::from_secs(1_800_000_000);

fn certificate() -> (String, KeyPair) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["*.app.example".to_owned(), "app.example".to_owned()]).unwrap();
    let at = |from_now: i64| time::OffsetDateTime::from_unix_timestamp(NOW.secs() + from_now).unwrap();
    (params.not_before, params.not_after) = (at(-3600), at(90 * 86_400));
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    (params.self_signed(&key).unwrap().pem(), key)
}

fn messages() -> Vec<Message> {
    let challenge = ChallengeEntry {
        token: "abc".to_owned(),
        hostname: Hostname::trusted("shop.example.com"),
        key_authorization: Some("abc.def".to_owned()),
        version: 3,
    };
    vec![
        Message::Deltas(Deltas { epoch: 5, after: 1, upto: 2, entries: vec![] }),
        Message::Reset { position: Position { epoch: 5, seq: 9 } },
        Message::Challenge { challenge: Some(challenge) },
    ]
}

fn feed() -> [Reader; 2] {
    let signer = FeedSigner::generate(&Hand::new(NOW, 1).env()).unwrap();
    let signed: Vec<Vec<u8>> = messages().iter().map(|m| wire::write(&signer, m).unwrap()).collect();
    let bodies: Vec<Vec<u8>> = messages().iter().map(|m| serde_json::to_vec(m).unwrap()).collect();
    let good = signed.clone();
    [
        Reader::octets("a signed message of the feed", signed, move |octets| {
            let read = wire::read(signer.verifier(), octets).is_ok();
            assert!(!read || good.iter().any(|m| m == octets), "a changed message is believed");
            read
        }),
        Reader::octets("a message of the feed", bodies, |octets| {
            let Ok(message) = serde_json::from_slice::<Message>(octets) else { return false };
            let written = serde_json::to_vec(&message).unwrap();
            assert_eq!(serde_json::from_slice::<Message>(&written).unwrap(), message);
            true
        }),
    ]
}

fn evidence() -> &'static str {
    r#"[{"check":"ownership","reason":"txt_propagating","expected":"x","observed":["a"],"seen_by":["b"],"advice":"c",
        "views":[{"observer":"ns1.example.com","said":"no such record","ttl":60,"as_expected":false},
                 {"observer":"ns2.example.com","said":"x","ttl":null,"as_expected":true}],
        "record_to_publish":[{"name":"a.example","host":"a","kind":"TXT","value":"v","keep":true}],"looked_at":1000000}]"#
}

fn jws() -> Vec<u8> {
    let header = r#"{"alg":"ES256","nonce":"abc","url":"https://ca.example/new-order","kid":"https://ca.example/acct/1"}"#;
    let (header, signature) = (BASE64_URL_SAFE_NO_PAD.encode(header), BASE64_URL_SAFE_NO_PAD.encode([7; 64]));
    format!(r#"{{"protected":"{header}","payload":"e30","signature":"{signature}"}}"#).into_bytes()
}

pub fn readers() -> Vec<Reader> {
    let (pem, key) = certificate();
    let (chain_pem, key_pem) = (pem.clone(), key.serialize_pem());
    let key_line = key_pem.lines().nth(1).unwrap().to_owned();
    let secret = Secret::from(key_pem.clone());
    let pkcs8 = Secret::new(key.serialize_der());
    let mut wanted = CertificateParams::new(vec!["shop.example.com".to_owned()]).unwrap();
    wanted.distinguished_name = DistinguishedName::new();
    let request = wanted.serialize_request(&key).unwrap();
    let token = JoinToken {
        url: "https://control.example:8444".to_owned(),
        secret: Secret::new(vec![7; 32]),
        pin: [8; 32],
        signing_key: *FeedSigner::generate(&Hand::new(NOW, 2).env()).unwrap().verifier().public(),
    };
    let token = String::from_utf8(token.to_text().expose().to_vec()).unwrap();
    let mut all = vec![
        Reader::text("a certificate's file", &[pem.as_str()], move |text| match imported::check(text, &secret, NOW) {
            Ok(taken) => {
                assert!(!taken.names.is_empty() && taken.not_after > NOW);
                true
            }
            Err(e) => {
                assert!(!e.to_string().contains(&key_line), "{e}");
                false
            }
        }),
        Reader::text("a key's file", &[key_pem.as_str()], move |text| {
            match imported::check(&chain_pem, &Secret::from(text.to_owned()), NOW) {
                Ok(_) => true,
                Err(e) => {
                    let told = e.to_string();
                    assert!(!text.lines().any(|line| line.len() > 20 && told.contains(line)), "{told}");
                    false
                }
            }
        }),
        Reader::text("a chain from a CA", &[pem.as_str()], move |text| {
            let names = [Hostname::trusted("app.example"), Hostname::trusted("*.app.example")];
            let _ = chain::check(text, &pkcs8, &names, NOW);
            text.contains("BEGIN CERTIFICATE")
        }),
        Reader::octets("a certificate signing request", vec![request.der().to_vec()], |octets| {
            csr::accept(octets, &["shop.example.com".to_owned()], "nobody").is_ok()
        }),
        Reader::octets("a signed request to a CA", vec![jws()], |octets| Jws::parse(octets).is_ok()),
        Reader::text(
            "a CA's problem",
            &[r#"{"type":"urn:ietf:params:acme:error:rateLimited","detail":"x","subproblems":[{}]}"#],
            |text| {
                let Some(problem) = serde_json::from_str(text).ok().and_then(ProblemDoc::new) else { return false };
                let _ = (problem.acme_type().len(), problem.detail().len(), problem.acts(), problem.subproblems().count());
                true
            },
        ),
        Reader::text("stored evidence", &[evidence()], |text| {
            let Ok(rows) = serde_json::from_str::<Vec<Evidence>>(text) else { return false };
            assert!(rows.iter().all(|e| e.old_until().is_none_or(|t| t >= e.looked_at)));
            let again = serde_json::to_string(&rows).unwrap();
            assert_eq!(serde_json::from_str::<Vec<Evidence>>(&again).unwrap(), rows);
            true
        }),
        Reader::text("a join token", &[token.as_str()], |text| match JoinToken::from_text(text) {
            Ok(token) => JoinToken::from_text(std::str::from_utf8(token.to_text().expose()).unwrap()).unwrap() == token,
            Err(e) => {
                let told = e.to_string();
                assert!(text.trim().len() < 20 || !told.contains(text.trim()), "{told}");
                false
            }
        }),
        Reader::text("a master key", &["0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"], |text| {
            match MasterKey::from_text(1, text) {
                Ok(_) => true,
                Err(e) => {
                    assert!(text.trim().len() < 20 || !e.to_string().contains(text.trim()), "{e}");
                    false
                }
            }
        }),
    ];
    all.extend(feed());
    all
}
