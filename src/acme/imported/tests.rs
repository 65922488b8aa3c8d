use aws_lc_rs::encoding::EcPrivateKeyRfc5915Der;
use proptest::prelude::*;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ECDSA_P521_SHA512, PKCS_ED25519, PKCS_RSA_SHA256,
};

use super::*;

const NOW: Moment = Moment::from_secs(1_800_000_000);

fn at(secs_from_now: i64) -> time::OffsetDateTime {
    time::OffsetDateTime::from_unix_timestamp(NOW.secs() + secs_from_now).unwrap()
}

struct Ca {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

fn ca(ends: i64) -> Ca {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "Bought CA");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    (params.not_before, params.not_after) = (at(-86_400), at(ends));
    let pem = params.self_signed(&key).unwrap().pem();
    Ca { issuer: Issuer::new(params, key), pem }
}

fn leaf(ca: &Ca, key: &KeyPair, modify: impl FnOnce(&mut CertificateParams)) -> String {
    let names = ["*.App.example".to_owned(), "app.example".to_owned()];
    let mut params = CertificateParams::new(names).unwrap();
    (params.not_before, params.not_after) = (at(-3600), at(90 * 86_400));
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    modify(&mut params);
    params.signed_by(key, &ca.issuer).unwrap().pem()
}

fn secret(text: &str) -> Secret {
    Secret::from(text.to_owned())
}

/// The sentence of a refusal, which must not give the key away.
fn refused(chain: &str, key: &str) -> String {
    let said = check(chain, &secret(key), NOW).unwrap_err().to_string();
    assert!(!key.lines().nth(1).is_some_and(|line| line.len() > 20 && said.contains(line)), "{said}");
    said
}

#[test]
fn a_bought_wildcard_is_taken_apart_whatever_form_its_key_has() {
    let ca = ca(365 * 86_400);
    for algorithm in [&PKCS_ECDSA_P256_SHA256, &PKCS_ECDSA_P384_SHA384, &PKCS_RSA_SHA256] {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let chain = format!("subject=somebody\n{}{}", leaf(&ca, &key, |_| {}), ca.pem);
        let pkcs8 = key.serialize_der();
        let mut forms = vec![key.serialize_pem()];
        if algorithm == &PKCS_RSA_SHA256 {
            // PKCS#8 is an envelope of 26 bytes around what PKCS#1 says of such a key.
            forms.push(pem("RSA PRIVATE KEY", &pkcs8[26..]));
        } else {
            let signing = if algorithm == &PKCS_ECDSA_P256_SHA256 {
                &ECDSA_P256_SHA256_ASN1_SIGNING
            } else {
                &ECDSA_P384_SHA384_ASN1_SIGNING
            };
            let pair = EcdsaKeyPair::from_pkcs8(signing, &pkcs8).unwrap();
            let sec1: EcPrivateKeyRfc5915Der<'static> = pair.private_key().as_der().unwrap();
            forms.push(pem("EC PRIVATE KEY", sec1.as_ref()));
        }
        for form in forms {
            let seen = check(&chain, &secret(&form), NOW).unwrap();
            assert_eq!(seen.names, ["*.app.example", "app.example"]);
            assert_eq!(
                (seen.not_before, seen.not_after.secs()),
                (Moment::from_secs(NOW.secs() - 3600), NOW.secs() + 90 * 86_400)
            );
            assert!(seen.issuer.contains("Bought CA") && !seen.without_intermediate && !seen.chain.contains("somebody"));
            assert_eq!((seen.chain.matches("BEGIN").count(), seen.fingerprint.len()), (2, 64));
            // What was read is what edges load.
            assert!(check(&seen.chain, &secret(&pem("PRIVATE KEY", seen.key.expose())), NOW).is_ok());
        }
    }
}

#[test]
fn a_chain_in_the_wrong_order_or_of_other_parts_is_told_as_such() {
    let (ca, other) = (ca(365 * 86_400), ca(365 * 86_400));
    let key = KeyPair::generate().unwrap();
    let (own, key) = (leaf(&ca, &key, |_| {}), key.serialize_pem());
    assert!(refused(&format!("{}{own}", ca.pem), &key).contains("put the server's own first"));
    assert!(refused(&format!("{own}{}", other.pem), &key).contains("certificate 1 of the chain file was not issued by"));
    assert!(refused(&format!("{own}{}{}", ca.pem, other.pem), &key).contains("certificate 2 of the chain file"));
    assert!(refused("", &key).contains("holds 0 certificates"));
    assert!(refused(&own.repeat(9), &key).contains("holds 9 certificates"));
    assert!(refused(&own.replace("MII", "AII"), &key).contains("does not parse"));
    assert!(refused(&pem("CERTIFICATE", b"junk"), &key).contains("certificate 1 of the chain file does not parse"));
    assert!(check(&own, &secret(&key), NOW).unwrap().without_intermediate);
}

#[test]
fn a_key_that_is_none_is_another_or_is_locked_is_told_as_such() {
    let ca = ca(365 * 86_400);
    let key = KeyPair::generate().unwrap();
    let chain = leaf(&ca, &key, |_| {}) + &ca.pem;
    let other = KeyPair::generate().unwrap().serialize_pem();
    assert!(refused(&chain, &other).contains("does not fit"));
    assert!(refused(&chain, &chain).contains("no private key"));
    assert!(refused(&chain, &format!("{other}{}", key.serialize_pem())).contains("more than one private key"));
    assert!(refused(&chain, &other.replace("BEGIN PRIVATE", "BEGIN ENCRYPTED PRIVATE")).contains("encrypted"));
    let locked = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nAAAA\n-----END RSA PRIVATE KEY-----\n";
    assert!(refused(&chain, locked).contains("openssl pkey"));
    assert!(refused(&chain, &pem("EC PRIVATE KEY", b"junk")).contains("kind that is not read"));
    assert!(refused(&chain, &pem("PRIVATE KEY", b"junk")).contains("cannot use it"));
}

#[test]
fn weak_keys_are_refused() {
    let ca = ca(365 * 86_400);
    for (algorithm, seen) in [(&PKCS_ECDSA_P521_SHA512, "528"), (&PKCS_ED25519, "1.3.101.112")] {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let chain = leaf(&ca, &key, |_| {}) + &ca.pem;
        let said = refused(&chain, &key.serialize_pem());
        assert!(said.contains("the certificate's key is") && said.contains(seen) && said.contains("P-256"), "{said}");
    }
}

#[test]
fn what_is_over_not_begun_not_a_servers_or_nameless_is_refused() {
    let whole = ca(365 * 86_400);
    let key = KeyPair::generate().unwrap();
    let of = |modify: fn(&mut CertificateParams)| refused(&(leaf(&whole, &key, modify) + &whole.pem), &key.serialize_pem());
    assert!(of(|p| p.not_after = at(-1)).contains("is valid from"));
    assert!(of(|p| p.not_before = at(3600)).contains("is valid from"));
    assert!(of(|p| p.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth]).contains("TLS server"));
    assert!(of(|p| p.subject_alt_names.clear()).contains("names no host"));
    let over = ca(-60);
    let said = refused(&(leaf(&over, &key, |_| {}) + &over.pem), &key.serialize_pem());
    assert!(said.contains("certificate 2 of the chain file ended at"), "{said}");
}

proptest! {
    #[test]
    fn junk_is_refused_without_a_panic(chain in any::<String>(), body in prop::collection::vec(any::<u8>(), 0..200), kind in 0..4usize) {
        let label = ["PRIVATE KEY", "EC PRIVATE KEY", "RSA PRIVATE KEY", "CERTIFICATE"][kind];
        prop_assert!(check(&chain, &secret(&pem(label, &body)), NOW).is_err());
        prop_assert!(check(&pem("CERTIFICATE", &body), &Secret::new(body.clone()), NOW).is_err());
    }
}
