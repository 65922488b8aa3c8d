//! The signed envelope: what is read, what is refused, and junk.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair, RsaPublicKeyComponents,
};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as B64;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::sandbox::ca::{Jwk, Jws, Kind, Signer};

fn key() -> EcdsaKeyPair {
    EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap()
}

fn jwk(key: &EcdsaKeyPair) -> Value {
    let point = key.public_key().as_ref();
    json!({ "kty": "EC", "crv": "P-256", "x": B64.encode(&point[1..33]), "y": B64.encode(&point[33..]) })
}

fn sign(key: &EcdsaKeyPair, header: &Value, payload: &str) -> Value {
    let (header, payload) = (B64.encode(header.to_string()), B64.encode(payload));
    let signature = key.sign(&SystemRandom::new(), format!("{header}.{payload}").as_bytes()).unwrap();
    json!({ "protected": header, "payload": payload, "signature": B64.encode(signature) })
}

fn header(key: &EcdsaKeyPair) -> Value {
    json!({ "alg": "ES256", "nonce": "bm9uY2U", "url": "https://ca.test/x", "jwk": jwk(key) })
}

fn refusal(body: &Value) -> Kind {
    Jws::parse(body.to_string().as_bytes()).unwrap_err().kind
}

#[test]
fn what_is_signed_is_read_back_and_only_by_its_key() {
    let (mine, other) = (key(), key());
    let body = sign(&mine, &header(&mine), "{\"a\":1}");
    let jws = Jws::parse(body.to_string().as_bytes()).unwrap();
    assert_eq!(
        (jws.payload.as_slice(), jws.nonce.as_str(), jws.url.as_str()),
        (&b"{\"a\":1}"[..], "bm9uY2U", "https://ca.test/x")
    );
    let Signer::Key(shown) = jws.signer.clone() else { panic!("a jwk was given: {:?}", jws.signer) };
    assert_eq!(Some(shown.clone()), Jwk::from_point(mine.public_key().as_ref()));
    assert!(jws.verify(&shown).is_ok());
    assert!(jws.verify(&Jwk::from_point(other.public_key().as_ref()).unwrap()).is_err());

    let mut altered = body;
    altered["payload"] = json!(B64.encode("{\"a\":2}"));
    assert!(Jws::parse(altered.to_string().as_bytes()).unwrap().verify(&shown).is_err());
}

#[test]
fn a_thumbprint_is_that_of_rfc_7638() {
    // The P-256 key of RFC 7517 Appendix A.1; the hash was taken with `openssl dgst -sha256` over the canonical form.
    let point = ["MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4", "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"]
        .map(|part| B64.decode(part).unwrap());
    let key = Jwk::from_point(&[&[4][..], &point[0], &point[1]].concat()).unwrap();
    assert_eq!(key.thumbprint(), "cn-I_WNMClehiVp51i_0VpOENW1upEerA8sEam5hn-s");
}

#[test]
fn each_way_of_being_wrong_has_its_own_type() {
    let key = key();
    let with = |field: &str, value: Value| {
        let mut h = header(&key);
        h[field] = value;
        sign(&key, &h, "")
    };
    assert_eq!(refusal(&with("alg", json!("PS256"))), Kind::BadSignatureAlgorithm);
    assert_eq!(refusal(&with("alg", json!("none"))), Kind::BadSignatureAlgorithm);
    assert_eq!(refusal(&with("nonce", json!("a nonce"))), Kind::BadNonce);
    assert_eq!(refusal(&with("nonce", Value::Null)), Kind::BadNonce);
    assert_eq!(refusal(&with("url", Value::Null)), Kind::Malformed);
    assert_eq!(refusal(&with("kid", json!("https://ca.test/account/1"))), Kind::Malformed, "both jwk and kid");
    assert_eq!(refusal(&with("jwk", Value::Null)), Kind::Malformed, "neither jwk nor kid");
    assert_eq!(refusal(&with("jwk", json!({ "kty": "RSA", "n": "AQAB", "e": "AQAB" }))), Kind::BadPublicKey);
    assert_eq!(refusal(&with("crit", json!(["b64"]))), Kind::Malformed);
    let mut unprotected = with("alg", json!("ES256"));
    unprotected["header"] = json!({});
    assert_eq!(refusal(&unprotected), Kind::Malformed);
    let algorithms =
        Jws::parse(with("alg", json!("HS256")).to_string().as_bytes()).unwrap_err().json()["algorithms"].clone();
    assert_eq!(algorithms, json!(["ES256", "RS256"]));
}

#[test]
fn an_rsa_account_signs_by_rs256_alone() {
    let mine = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
    let public = RsaPublicKeyComponents::<Vec<u8>>::from(mine.public_key());
    let jwk = json!({ "kty": "RSA", "n": B64.encode(&public.n), "e": B64.encode(&public.e) });
    let signed = |alg: &str| {
        let header = B64.encode(json!({ "alg": alg, "nonce": "bm9uY2U", "url": "u", "jwk": jwk }).to_string());
        let mut signature = vec![0; mine.public_modulus_len()];
        let message = format!("{header}.");
        mine.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message.as_bytes(), &mut signature).unwrap();
        Jws::parse(json!({ "protected": header, "payload": "", "signature": B64.encode(signature) }).to_string().as_bytes())
    };
    let jws = signed("RS256").unwrap();
    let Signer::Key(shown) = jws.signer.clone() else { panic!("a jwk was given: {:?}", jws.signer) };
    assert!(jws.verify(&shown).is_ok());
    assert!(jws.verify(&Jwk::from_point(key().public_key().as_ref()).unwrap()).is_err());
    assert!(signed("ES256").unwrap().verify(&shown).is_err(), "the algorithm must be the key's own");
}

#[test]
fn an_rsa_thumbprint_is_that_of_rfc_7638() {
    // The key of RFC 7638 §3.1, in an envelope that need not be signed to be read.
    let n = "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMs\
        tn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbIS\
        D08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw";
    let header = json!({ "alg": "RS256", "nonce": "bm9uY2U", "url": "u", "jwk": { "kty": "RSA", "n": n, "e": "AQAB" } });
    let body = json!({ "protected": B64.encode(header.to_string()), "payload": "", "signature": "" });
    let Signer::Key(shown) = Jws::parse(body.to_string().as_bytes()).unwrap().signer else { panic!("a jwk was given") };
    assert_eq!(shown.thumbprint(), "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
}

proptest! {
    #[test]
    fn junk_is_refused_and_never_panics(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(Jws::parse(&body).is_err());
    }

    #[test]
    fn junk_in_the_right_frame_is_refused(protected in "\\PC{0,60}", payload in "\\PC{0,60}", signature in "\\PC{0,60}") {
        let body = json!({ "protected": protected, "payload": payload, "signature": signature }).to_string();
        prop_assert!(Jws::parse(body.as_bytes()).is_err());
    }

    #[test]
    fn junk_in_a_well_formed_header_never_verifies(
        nonce in "[A-Za-z0-9_-]{0,20}", x in "[A-Za-z0-9_=-]{40,46}", kid in proptest::option::of("\\PC{0,20}"), junk in any::<[u8; 64]>(),
    ) {
        let mut header = json!({ "alg": "ES256", "nonce": nonce, "url": "u", "jwk": { "kty": "EC", "crv": "P-256", "x": x, "y": x } });
        if let Some(kid) = &kid {
            header["kid"] = json!(kid);
        }
        let body = json!({ "protected": B64.encode(header.to_string()), "payload": "", "signature": B64.encode(junk) });
        if let Ok(Jws { signer: Signer::Key(key), .. }) = Jws::parse(body.to_string().as_bytes()) {
            prop_assert!(Jws::parse(body.to_string().as_bytes()).unwrap().verify(&key).is_err());
        }
    }

    #[test]
    fn any_payload_makes_the_round_trip(payload in "\\PC{0,200}") {
        let key = key();
        let jws = Jws::parse(sign(&key, &header(&key), &payload).to_string().as_bytes()).unwrap();
        prop_assert_eq!(jws.payload.as_slice(), payload.as_bytes());
        let Signer::Key(shown) = jws.signer.clone() else { return Err(TestCaseError::fail("a jwk was given")) };
        prop_assert!(jws.verify(&shown).is_ok());
    }
}
