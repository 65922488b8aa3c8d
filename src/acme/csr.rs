//! Keys and certificate requests: P-256 from drawn bytes, names in the SAN only.

use aws_lc_rs::agreement::{ECDH_P256, PrivateKey};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};
use rcgen::{CertificateParams, DistinguishedName, KeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use zeroize::Zeroizing;

use crate::env::Env;
use crate::model::hostname::Hostname;
use crate::model::secret::Secret;

/// Why no key or request was made.
#[derive(Debug, thiserror::Error)]
pub enum CsrError {
    /// The cryptographic library made no key.
    #[error("the cryptographic library made no P-256 key")]
    NoKey,
    /// The stored key is none.
    #[error("the stored key is no P-256 key in PKCS#8")]
    BadKey(#[source] rcgen::Error),
    /// The names cannot stand in a certificate.
    #[error("no certificate request could be made for {names:?}")]
    BadNames {
        /// The names.
        names: Vec<String>,
        /// Why.
        source: rcgen::Error,
    },
}

/// A new P-256 key, PKCS#8. The same draws give the same key.
pub fn new_key(env: &Env) -> Result<Secret, CsrError> {
    // A draw that is no scalar of the curve has a chance of 2^-32; a few more draws make it never.
    (0..4).find_map(|_| key_from(&Zeroizing::new(env.draw::<32>()))).ok_or(CsrError::NoKey)
}

/// A new account key: ES256, which every CA takes (RFC 8555 §6.2).
pub fn new_account_key(env: &Env) -> Result<Secret, CsrError> {
    new_key(env)
}

fn key_from(scalar: &[u8; 32]) -> Option<Secret> {
    let public = PrivateKey::from_private_key(&ECDH_P256, scalar).ok()?.compute_public_key().ok()?;
    let pair =
        EcdsaKeyPair::from_private_key_and_public_key(&ECDSA_P256_SHA256_ASN1_SIGNING, scalar, public.as_ref()).ok()?;
    Some(Secret::new(pair.to_pkcs8v1().ok()?.as_ref().to_vec()))
}

/// A certificate request (DER) for the names, signed by the key; the subject is empty.
pub fn csr(key_pkcs8: &Secret, names: &[Hostname]) -> Result<Vec<u8>, CsrError> {
    let key = KeyPair::try_from(&PrivatePkcs8KeyDer::from(key_pkcs8.expose())).map_err(CsrError::BadKey)?;
    let names: Vec<String> = names.iter().map(|n| n.as_str().to_owned()).collect();
    let made = CertificateParams::new(names.clone()).and_then(|mut params| {
        params.distinguished_name = DistinguishedName::new();
        params.serialize_request(&key)
    });
    made.map(|request| request.der().to_vec()).map_err(|source| CsrError::BadNames { names, source })
}

#[cfg(test)]
mod tests {
    use x509_parser::prelude::{FromDer, GeneralName, ParsedExtension, X509CertificationRequest};

    use super::*;
    use crate::env::manual::Hand;
    use crate::model::moment::Moment;

    #[test]
    fn a_request_names_its_hosts_in_the_san_only_and_one_seed_gives_one_key() {
        let env = || Hand::new(Moment::default(), 4).env();
        let key = new_key(&env()).unwrap();
        assert_eq!(key, new_account_key(&env()).unwrap());
        let der = csr(&key, &[Hostname::trusted("support.acme.test"), Hostname::trusted("acme.test")]).unwrap();
        let (_, request) = X509CertificationRequest::from_der(&der).unwrap();
        request.verify_signature().unwrap();
        assert_eq!(request.certification_request_info.subject.iter().count(), 0);
        let sans: Vec<_> = request
            .requested_extensions()
            .unwrap()
            .filter_map(|e| match e {
                ParsedExtension::SubjectAlternativeName(san) => Some(san.general_names.clone()),
                _ => None,
            })
            .flatten()
            .collect();
        assert_eq!(sans, [GeneralName::DNSName("support.acme.test"), GeneralName::DNSName("acme.test")]);
    }

    #[test]
    fn what_is_no_key_or_no_name_is_refused() {
        let key = new_key(&Hand::new(Moment::default(), 4).env()).unwrap();
        assert!(matches!(csr(&Secret::new(b"junk".to_vec()), &[Hostname::trusted("a.test")]), Err(CsrError::BadKey(_))));
        assert!(matches!(csr(&key, &[Hostname::trusted("bücher.test")]), Err(CsrError::BadNames { .. })));
    }
}
