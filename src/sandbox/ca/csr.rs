//! Whether a certificate signing request fits its order (RFC 8555 §7.4).

use std::collections::BTreeSet;

use rcgen::{CertificateSigningRequestParams, DnType, DnValue, PublicKey, PublicKeyData, SanType};
use rustls::pki_types::CertificateSigningRequestDer;

use super::jwk::Jwk;
use super::problem::{Kind, Problem};

/// Reads the CSR and gives its key, when names and key may be certified for this order.
pub fn accept(csr_der: &[u8], ordered: &[String], account_thumbprint: &str) -> Result<PublicKey, Problem> {
    let csr = CertificateSigningRequestParams::from_der(&CertificateSigningRequestDer::from(csr_der))
        .map_err(|e| refused(format!("the CSR cannot be read, or its signature does not fit its key: {e}")))?;
    let asked = names(&csr)?;
    let ordered: BTreeSet<String> = ordered.iter().cloned().collect();
    if asked != ordered {
        let list = |set: BTreeSet<String>| set.into_iter().collect::<Vec<_>>().join(", ");
        return Err(refused(format!("the CSR asks for [{}], the order is for [{}]", list(asked), list(ordered))));
    }
    // §11.1: a key that signs account requests must not be one that sits on servers.
    if Jwk::from_point(csr.public_key.der_bytes()).is_some_and(|key| key.thumbprint() == account_thumbprint) {
        return Err(refused("the CSR is for the account's own key; make another for the certificate".to_owned()));
    }
    Ok(csr.public_key)
}

fn names(csr: &CertificateSigningRequestParams) -> Result<BTreeSet<String>, Problem> {
    let mut names = BTreeSet::new();
    for san in &csr.params.subject_alt_names {
        let SanType::DnsName(name) = san else {
            return Err(refused(format!("the CSR asks for {san:?}; only DNS names are certified here")));
        };
        names.insert(name.as_str().to_ascii_lowercase());
    }
    if let Some(DnValue::Utf8String(cn)) = csr.params.distinguished_name.get(&DnType::CommonName) {
        names.insert(cn.to_ascii_lowercase());
    }
    Ok(names)
}

fn refused(detail: String) -> Problem {
    Problem::new(Kind::BadCsr, detail)
}
