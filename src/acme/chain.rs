//! Checking a chain before it is stored: it fits the key and the names, is valid now, and its links hold.
//!
//! Whether a browser trusts the last link is the CA's affair; whether the chain is *ours* is decided here, so that key and
//! certificate are stored as one unit or not at all.

use std::collections::BTreeSet;
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use rcgen::{KeyPair, PublicKeyData};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::server::ParsedCertificate;
use x509_parser::prelude::{FromDer, GeneralName, ParsedExtension, X509Certificate};

use crate::model::hostname::Hostname;
use crate::model::moment::Moment;
use crate::model::secret::Secret;
use crate::model::serial;

/// More certificates than any public chain has.
pub(super) const MAX_LENGTH: usize = 8;
/// How far the CA's clock may be ahead of ours.
pub const CLOCK_SLACK: Duration = Duration::from_secs(600);

/// A chain that passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedChain {
    /// Serial number of the leaf, as [`serial`] writes it.
    pub serial: String,
    /// From when the leaf is valid.
    pub not_before: Moment,
    /// Until when.
    pub not_after: Moment,
    /// Who issued the leaf.
    pub issuer: String,
    /// SHA-256 of the leaf, lower-case hex.
    pub fingerprint: String,
    /// The certificates as DER, leaf first.
    pub der: Vec<Vec<u8>>,
    /// What a renewal names it by (RFC 9773 §4.1); `None` when the leaf has no authority key identifier.
    pub ari_id: Option<String>,
}

/// Why a chain was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// Not PEM, or none in it, or too many.
    #[error("the CA's chain has {seen}; expected 1 to {MAX_LENGTH} PEM certificates")]
    NotAChain {
        /// What it has.
        seen: String,
    },
    /// One of them does not parse.
    #[error("certificate {at} of the chain does not parse: {why}")]
    NotACertificate {
        /// Its place, the leaf being 0.
        at: usize,
        /// Why.
        why: String,
    },
    /// The stored key is unusable.
    #[error("the stored key is no P-256 key in PKCS#8")]
    BadKey,
    /// The leaf is for another key.
    #[error("the certificate is for another key than the stored one")]
    OtherKey,
    /// The leaf is for other names.
    #[error("the certificate names {seen:?}; expected exactly {expected:?}")]
    OtherNames {
        /// What it names.
        seen: Vec<String>,
        /// What was ordered.
        expected: Vec<String>,
    },
    /// Not valid at this time.
    #[error("the certificate is valid from {not_before} to {not_after}, and now it is {now}")]
    NotValidNow {
        /// From when.
        not_before: Moment,
        /// Until when.
        not_after: Moment,
        /// Our time.
        now: Moment,
    },
    /// The leaf may sign certificates or may not serve TLS.
    #[error("the certificate is not one for a TLS server")]
    NotForServers,
    /// A certificate is not signed by the one after it.
    #[error("certificate {at} of the chain was not issued by the one after it")]
    BrokenLink {
        /// Its place, the leaf being 0.
        at: usize,
    },
}

/// Checks a chain from a CA against the key and the names it was ordered for.
pub fn check(pem: &str, key_pkcs8: &Secret, names: &[Hostname], now: Moment) -> Result<CheckedChain, ChainError> {
    let der = split(pem)?;
    let chain = parse(&der)?;
    let ([leaf, ..], [leaf_der, ..]) = (chain.as_slice(), der.as_slice()) else {
        return Err(ChainError::NotAChain { seen: "no certificate".to_owned() });
    };
    let leaf_der = CertificateDer::from(leaf_der.as_slice());
    let key = KeyPair::try_from(&PrivatePkcs8KeyDer::from(key_pkcs8.expose())).map_err(|_| ChainError::BadKey)?;
    if leaf.public_key().raw != key.subject_public_key_info() {
        return Err(ChainError::OtherKey);
    }
    // The parser above forgives what a TLS stack does not; the edge must be able to load what is stored.
    ParsedCertificate::try_from(&leaf_der).map_err(|e| ChainError::NotACertificate { at: 0, why: e.to_string() })?;
    same_names(leaf, names)?;
    let for_servers = match leaf.extended_key_usage() {
        Ok(Some(usage)) => usage.value.server_auth || usage.value.any,
        Ok(None) => true,
        Err(_) => false,
    };
    if leaf.is_ca() || !for_servers {
        return Err(ChainError::NotForServers);
    }
    let (not_before, not_after) = (
        Moment::from_secs(leaf.validity().not_before.timestamp()),
        Moment::from_secs(leaf.validity().not_after.timestamp()),
    );
    if not_after <= now || not_before > now + CLOCK_SLACK {
        return Err(ChainError::NotValidNow { not_before, not_after, now });
    }
    for (at, pair) in chain.windows(2).enumerate() {
        if pair[0].issuer() != pair[1].subject() || pair[0].verify_signature(Some(pair[1].public_key())).is_err() {
            return Err(ChainError::BrokenLink { at });
        }
    }
    Ok(CheckedChain {
        serial: serial::of(leaf.raw_serial()),
        not_before,
        not_after,
        issuer: leaf.issuer().to_string(),
        fingerprint: hex(digest(&SHA256, &leaf_der).as_ref()),
        ari_id: ari_id(&leaf_der),
        der,
    })
}

/// What a renewal names a certificate by (RFC 9773 §4.1); `None` when it has no authority key identifier, or is none.
pub fn ari_id(der: &[u8]) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let key_id = certificate.iter_extensions().find_map(|extension| match extension.parsed_extension() {
        ParsedExtension::AuthorityKeyIdentifier(authority) => authority.key_identifier.as_ref().map(|id| id.0),
        _ => None,
    })?;
    Some(certificate_id(key_id, certificate.raw_serial()))
}

/// The key identifier of the authority and the content octets of the serial number, a leading zero octet included.
fn certificate_id(key_id: &[u8], serial: &[u8]) -> String {
    format!("{}.{}", BASE64_URL_SAFE_NO_PAD.encode(key_id), BASE64_URL_SAFE_NO_PAD.encode(serial))
}

/// The leaf of a chain, as DER; none where the text is no chain.
pub fn leaf(pem: &str) -> Option<Vec<u8>> {
    split(pem).ok()?.into_iter().next()
}

pub(super) fn split(pem: &str) -> Result<Vec<Vec<u8>>, ChainError> {
    let mut der = Vec::new();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        let certificate =
            certificate.map_err(|e| ChainError::NotAChain { seen: format!("something else than PEM ({e})") })?;
        der.push(certificate.to_vec());
    }
    match der.len() {
        1..=MAX_LENGTH => Ok(der),
        seen => Err(ChainError::NotAChain { seen: format!("{seen} certificates") }),
    }
}

pub(super) fn parse(der: &[Vec<u8>]) -> Result<Vec<X509Certificate<'_>>, ChainError> {
    let parsed = der.iter().enumerate().map(|(at, bytes)| match X509Certificate::from_der(bytes) {
        Ok(([], certificate)) => Ok(certificate),
        Ok((rest, _)) => Err(ChainError::NotACertificate { at, why: format!("{} bytes after its end", rest.len()) }),
        Err(e) => Err(ChainError::NotACertificate { at, why: e.to_string() }),
    });
    parsed.collect()
}

fn same_names(leaf: &X509Certificate<'_>, names: &[Hostname]) -> Result<(), ChainError> {
    let expected: BTreeSet<String> = names.iter().map(|n| n.as_str().to_owned()).collect();
    let seen: BTreeSet<String> = match leaf.subject_alternative_name() {
        Ok(Some(san)) => san.value.general_names.iter().map(name).collect(),
        _ => BTreeSet::new(),
    };
    if seen == expected {
        return Ok(());
    }
    Err(ChainError::OtherNames { seen: seen.into_iter().collect(), expected: expected.into_iter().collect() })
}

pub(super) fn name(general: &GeneralName<'_>) -> String {
    match general {
        GeneralName::DNSName(dns) => dns.to_ascii_lowercase(),
        other => other.to_string(),
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests;
