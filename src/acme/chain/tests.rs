use proptest::prelude::*;
use rcgen::{BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer};

use super::super::csr::new_key;
use super::*;
use crate::env::manual::Hand;

const NOW: Moment = Moment::from_secs(1_800_000_000);

fn key(seed: u64) -> Secret {
    new_key(&Hand::new(NOW, seed).env()).unwrap()
}

fn pair(secret: &Secret) -> KeyPair {
    KeyPair::try_from(&PrivatePkcs8KeyDer::from(secret.expose())).unwrap()
}

fn ca_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

fn at(secs_from_now: i64) -> time::OffsetDateTime {
    time::OffsetDateTime::from_unix_timestamp(NOW.secs() + secs_from_now).unwrap()
}

/// A leaf for `names` and the key of seed 1, changed by `modify`, followed by its issuer's certificate.
fn chain(names: &[&str], modify: impl FnOnce(&mut CertificateParams)) -> String {
    let ca_key = pair(&key(9));
    let ca = ca_params("Test CA").self_signed(&ca_key).unwrap();
    let mut params = CertificateParams::new(names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>()).unwrap();
    params.distinguished_name = DistinguishedName::new();
    params.not_before = at(-3600);
    params.not_after = at(90 * 86_400);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    modify(&mut params);
    let leaf = params.signed_by(&pair(&key(1)), &Issuer::new(ca_params("Test CA"), ca_key)).unwrap();
    leaf.pem() + &ca.pem()
}

fn names(names: &[&str]) -> Vec<Hostname> {
    names.iter().map(|n| Hostname::trusted(n)).collect()
}

#[test]
fn a_chain_that_fits_is_taken_apart() {
    let checked = check(&chain(&["a.test", "b.test"], |_| ()), &key(1), &names(&["b.test", "a.test"]), NOW).unwrap();
    assert_eq!(
        (checked.not_before, checked.not_after),
        (NOW - Duration::from_secs(3600), NOW + Duration::from_secs(90 * 86_400))
    );
    assert_eq!((checked.issuer.as_str(), checked.der.len(), checked.fingerprint.len()), ("CN=Test CA", 2, 64));
    assert!(!checked.serial.is_empty());
    let ari = checked.ari_id.unwrap();
    assert!(ari.split('.').count() == 2, "{ari}");
}

#[test]
fn a_chain_for_another_key_or_other_names_is_refused() {
    let fits = chain(&["a.test"], |_| ());
    assert_eq!(check(&fits, &key(2), &names(&["a.test"]), NOW), Err(ChainError::OtherKey));
    assert_eq!(check(&fits, &Secret::new(vec![1, 2]), &names(&["a.test"]), NOW), Err(ChainError::BadKey));
    for other in [&["b.test"][..], &["a.test", "b.test"], &[]] {
        assert!(matches!(check(&fits, &key(1), &names(other), NOW), Err(ChainError::OtherNames { .. })), "{other:?}");
    }
    let more = chain(&["a.test", "192.0.2.1"], |_| ());
    assert!(matches!(check(&more, &key(1), &names(&["a.test"]), NOW), Err(ChainError::OtherNames { .. })));
}

#[test]
fn a_chain_of_another_time_is_refused() {
    for (from, to) in [(-7200, -3600), (-7200, 0), (3600, 7200)] {
        let chain = chain(&["a.test"], |p| (p.not_before, p.not_after) = (at(from), at(to)));
        let refused = check(&chain, &key(1), &names(&["a.test"]), NOW);
        assert!(matches!(refused, Err(ChainError::NotValidNow { .. })), "{from} {to} {refused:?}");
    }
    let slightly_ahead = chain(&["a.test"], |p| p.not_before = at(300));
    assert!(check(&slightly_ahead, &key(1), &names(&["a.test"]), NOW).is_ok());
}

#[test]
fn a_certificate_that_is_not_for_a_server_is_refused() {
    let client_only = chain(&["a.test"], |p| p.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth]);
    let authority = chain(&["a.test"], |p| p.is_ca = IsCa::Ca(BasicConstraints::Unconstrained));
    for chain in [client_only, authority] {
        assert_eq!(check(&chain, &key(1), &names(&["a.test"]), NOW), Err(ChainError::NotForServers));
    }
}

#[test]
fn links_must_hold() {
    let fits = chain(&["a.test"], |_| ());
    let leaf = &fits[..fits[1..].find("-----BEGIN").unwrap() + 1];
    assert!(check(leaf, &key(1), &names(&["a.test"]), NOW).is_ok());
    // The issuer's name with another key, and another name with the issuer's key.
    for wrong in [ca_params("Test CA").self_signed(&pair(&key(8))), ca_params("Other CA").self_signed(&pair(&key(9)))] {
        let chain = leaf.to_owned() + &wrong.unwrap().pem();
        assert_eq!(check(&chain, &key(1), &names(&["a.test"]), NOW), Err(ChainError::BrokenLink { at: 0 }));
    }
}

#[test]
fn garbage_is_refused() {
    for garbage in ["", "<html>", "-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n"] {
        assert!(matches!(check(garbage, &key(1), &[], NOW), Err(ChainError::NotAChain { .. })), "{garbage:?}");
    }
    let no_der = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert!(matches!(check(no_der, &key(1), &[], NOW), Err(ChainError::NotACertificate { at: 0, .. })));
    assert!(matches!(check(&no_der.repeat(9), &key(1), &[], NOW), Err(ChainError::NotAChain { .. })));
}

proptest! {
    #[test]
    fn a_damaged_chain_never_panics_and_no_damaged_leaf_passes(at in 0usize..600, with in "[A-Za-z0-9+/]") {
        let fits = chain(&["a.test"], |_| ());
        let mut damaged = fits.clone();
        damaged.replace_range(at..=at, &with);
        if let Ok(checked) = check(&damaged, &key(1), &names(&["a.test"]), NOW) {
            // Damage elsewhere than in the leaf may pass: the issuer's own signature is for whoever trusts it to check.
            prop_assert_eq!(&checked.der[0], &check(&fits, &key(1), &names(&["a.test"]), NOW).unwrap().der[0]);
        }
    }
}

/// The example of RFC 9773 §4.1, and the certificate of its Appendix A that it is taken from.
#[test]
fn a_certificate_is_named_as_the_rfc_names_its_example() {
    let key_id = [
        0x69, 0x88, 0x5b, 0x6b, 0x87, 0x46, 0x40, 0x41, 0xe1, 0xb3, 0x7b, 0x84, 0x7b, 0xa0, 0xae, 0x2c, 0xde, 0x01, 0xc8,
        0xd4,
    ];
    let id = "aYhba4dGQEHhs3uEe6CuLN4ByNQ.AIdlQyE";
    assert_eq!(certificate_id(&key_id, &[0x00, 0x87, 0x65, 0x43, 0x21]), id);
    let example = "-----BEGIN CERTIFICATE-----\n\
        MIIBQzCB66ADAgECAgUAh2VDITAKBggqhkjOPQQDAjAVMRMwEQYDVQQDEwpFeGFt\n\
        cGxlIENBMCIYDzAwMDEwMTAxMDAwMDAwWhgPMDAwMTAxMDEwMDAwMDBaMBYxFDAS\n\
        BgNVBAMTC2V4YW1wbGUuY29tMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEeBZu\n\
        7cbpAYNXZLbbh8rNIzuOoqOOtmxA1v7cRm//AwyMwWxyHz4zfwmBhcSrf47NUAFf\n\
        qzLQ2PPQxdTXREYEnKMjMCEwHwYDVR0jBBgwFoAUaYhba4dGQEHhs3uEe6CuLN4B\n\
        yNQwCgYIKoZIzj0EAwIDRwAwRAIge09+S5TZAlw5tgtiVvuERV6cT4mfutXIlwTb\n\
        +FYN/8oCIClDsqBklhB9KAelFiYt9+6FDj3z4KGVelYM5MdsO3pK\n\
        -----END CERTIFICATE-----\n";
    assert_eq!(ari_id(&split(example).unwrap()[0]).as_deref(), Some(id));
    // One that does not say who issued it has no name.
    let nameless = chain(&["a.test"], |p| p.use_authority_key_identifier_extension = false);
    assert_eq!(ari_id(&split(&nameless).unwrap()[0]), None);
    assert_eq!(ari_id(b"no certificate"), None);
}
