//! Checking a certificate that an operator brings as two files: it must be one that every edge can serve and every browser
//! take, or nothing of it is stored.
//!
//! Unlike [`chain::check`](super::chain::check), nothing here was ordered by us: key and names are whatever the files hold,
//! and the sentences speak of files to somebody who can mend them.

use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;
use x509_parser::prelude::{GeneralName, X509Certificate};
use x509_parser::public_key::PublicKey;

use super::chain::{CLOCK_SLACK, ChainError, MAX_LENGTH, hex, name, parse, split};
use crate::model::moment::Moment;
use crate::model::secret::Secret;
use crate::model::serial;

/// Bits of an RSA key, from and to. Shorter is broken soon, longer costs every handshake.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=4096;
/// Signature algorithms nobody believes any more: MD5 and SHA-1, with RSA and ECDSA.
const BROKEN_SIGNATURES: [&str; 4] = ["1.2.840.113549.1.1.4", "1.2.840.113549.1.1.5", "1.2.840.10045.4.1", "1.3.14.3.2.29"];

/// A certificate that passed.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The names it carries, lower case.
    pub names: Vec<String>,
    /// The chain in PEM, leaf first, without anything else the file held.
    pub chain: String,
    /// The key, PKCS#8.
    pub key: Secret,
    /// Serial number of the leaf, lower-case hex.
    pub serial: String,
    /// SHA-256 of the leaf, lower-case hex.
    pub fingerprint: String,
    /// Who issued the leaf.
    pub issuer: String,
    /// From when the leaf is valid.
    pub not_before: Moment,
    /// Until when.
    pub not_after: Moment,
    /// Whether nothing but the leaf was given, and the leaf did not sign itself.
    pub without_intermediate: bool,
}

/// Why two files are no certificate to serve with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportedError {
    /// Not PEM, or none in it, or too many.
    #[error(
        "the chain file holds {seen}; expected the server's certificate and its intermediates, 1 to {MAX_LENGTH} blocks of PEM"
    )]
    NotAChain {
        /// What it holds.
        seen: String,
    },
    /// One does not parse.
    #[error("certificate {at} of the chain file does not parse: {why}")]
    NotACertificate {
        /// Its place, the first being 1.
        at: usize,
        /// Why.
        why: String,
    },
    /// The order is wrong.
    #[error(
        "certificate {at} of the chain file was not issued by the one after it: put the server's certificate first, then who issued it, and so on"
    )]
    Order {
        /// Its place, the first being 1.
        at: usize,
    },
    /// No key, or several.
    #[error("the key file holds {seen}; expected one private key in PEM (PRIVATE KEY, EC PRIVATE KEY or RSA PRIVATE KEY)")]
    NotAKey {
        /// What it holds.
        seen: String,
    },
    /// A key with a passphrase.
    #[error("the key in the key file is encrypted: decrypt it first (openssl pkey -in FILE -out PLAIN)")]
    EncryptedKey,
    /// The key is for something else.
    #[error("the key does not fit the first certificate of the chain file: give the key it was requested with")]
    OtherKey,
    /// A key that browsers or edges do not take.
    #[error("{whose} is {seen}; expected ECDSA on P-256 or P-384, or RSA of 2048 to 4096 bits")]
    Weak {
        /// The certificate's place, in words.
        whose: String,
        /// What it is.
        seen: String,
    },
    /// A broken signature algorithm.
    #[error("certificate {at} of the chain file is signed with MD5 or SHA-1, which no browser takes: have it issued again")]
    BrokenSignature {
        /// Its place, the first being 1.
        at: usize,
    },
    /// Over or not begun.
    #[error("the certificate is valid from {} to {}, and now it is {}", not_before.rfc3339(), not_after.rfc3339(), now.rfc3339())]
    NotValidNow {
        /// From when.
        not_before: Moment,
        /// Until when.
        not_after: Moment,
        /// Our time.
        now: Moment,
    },
    /// A later certificate of the chain is over.
    #[error("certificate {at} of the chain file ended at {}: take the chain that the CA gives now", not_after.rfc3339())]
    ChainExpired {
        /// Its place, the first being 1.
        at: usize,
        /// When it ended.
        not_after: Moment,
    },
    /// The first one is a CA's, or a client's.
    #[error("the first certificate of the chain file is not one for a TLS server: put the server's own first")]
    NotForServers,
    /// No DNS names.
    #[error("the certificate names no host: its subject alternative names are {seen:?}")]
    NoNames {
        /// What it names.
        seen: Vec<String>,
    },
    /// The TLS stack of the edges says no.
    #[error("the edges' TLS cannot use it: {why}")]
    Unusable {
        /// Why.
        why: String,
    },
}

/// Checks the content of the two files.
pub fn check(chain_file: &str, key_file: &Secret, now: Moment) -> Result<Imported, ImportedError> {
    let der = split(chain_file).map_err(chain_error)?;
    let chain = parse(&der).map_err(chain_error)?;
    let ([leaf, ..], [leaf_der, ..]) = (chain.as_slice(), der.as_slice()) else {
        return Err(ImportedError::NotAChain { seen: "no certificate".to_owned() });
    };
    let key = read_key(key_file)?;
    if (leaf.is_ca() && chain.len() > 1) || !for_servers(leaf) {
        return Err(ImportedError::NotForServers);
    }
    for (at, pair) in chain.windows(2).enumerate() {
        if pair[0].issuer() != pair[1].subject() || pair[0].verify_signature(Some(pair[1].public_key())).is_err() {
            return Err(ImportedError::Order { at: at + 1 });
        }
    }
    strength(&chain)?;
    let validity = |c: &X509Certificate<'_>| {
        let v = c.validity();
        (Moment::from_secs(v.not_before.timestamp()), Moment::from_secs(v.not_after.timestamp()))
    };
    let (not_before, not_after) = validity(leaf);
    if not_after <= now || not_before > now + CLOCK_SLACK {
        return Err(ImportedError::NotValidNow { not_before, not_after, now });
    }
    for (at, certificate) in chain.iter().enumerate().skip(1) {
        let (_, not_after) = validity(certificate);
        if not_after <= now {
            return Err(ImportedError::ChainExpired { at: at + 1, not_after });
        }
    }
    usable(&der, &key)?;
    Ok(Imported {
        names: names(leaf)?,
        chain: der.iter().map(|d| pem("CERTIFICATE", d)).collect(),
        key,
        serial: serial::of(leaf.raw_serial()),
        fingerprint: hex(digest(&SHA256, leaf_der).as_ref()),
        issuer: leaf.issuer().to_string(),
        not_before,
        not_after,
        without_intermediate: chain.len() == 1 && leaf.issuer() != leaf.subject(),
    })
}

fn chain_error(e: ChainError) -> ImportedError {
    match e {
        ChainError::NotAChain { seen } => ImportedError::NotAChain { seen },
        ChainError::NotACertificate { at, why } => ImportedError::NotACertificate { at: at + 1, why },
        other => ImportedError::Unusable { why: other.to_string() },
    }
}

/// The one private key of the file, as PKCS#8: what edges are given.
fn read_key(file: &Secret) -> Result<Secret, ImportedError> {
    let not = |seen: &str| ImportedError::NotAKey { seen: seen.to_owned() };
    let text = file.expose_str().ok_or_else(|| not("something else than text"))?;
    if text.contains("BEGIN ENCRYPTED PRIVATE KEY") || text.contains("Proc-Type: 4,ENCRYPTED") {
        return Err(ImportedError::EncryptedKey);
    }
    let mut keys = PrivateKeyDer::pem_slice_iter(text.as_bytes());
    let key = match keys.next() {
        Some(Ok(key)) => key,
        Some(Err(_)) => return Err(not("damaged PEM")),
        None => return Err(not("no private key")),
    };
    if keys.next().is_some() {
        return Err(not("more than one private key"));
    }
    let pkcs8 = match &key {
        PrivateKeyDer::Pkcs8(key) => Some(key.secret_pkcs8_der().to_vec()),
        PrivateKeyDer::Sec1(key) => [&ECDSA_P256_SHA256_ASN1_SIGNING, &ECDSA_P384_SHA384_ASN1_SIGNING]
            .into_iter()
            .find_map(|curve| EcdsaKeyPair::from_private_key_der(curve, key.secret_sec1_der()).ok())
            .and_then(|pair| pair.to_pkcs8v1().ok())
            .map(|document| document.as_ref().to_vec()),
        PrivateKeyDer::Pkcs1(key) => aws_lc_rs::rsa::KeyPair::from_der(key.secret_pkcs1_der()).ok().and_then(|pair| {
            let der: Result<Pkcs8V1Der<'static>, _> = pair.as_der();
            der.ok().map(|der| der.as_ref().to_vec())
        }),
        _ => None,
    };
    pkcs8.map(Secret::new).ok_or_else(|| not("a private key of a kind that is not read"))
}

fn for_servers(leaf: &X509Certificate<'_>) -> bool {
    match leaf.extended_key_usage() {
        Ok(Some(usage)) => usage.value.server_auth || usage.value.any,
        Ok(None) => true,
        Err(_) => false,
    }
}

fn strength(chain: &[X509Certificate<'_>]) -> Result<(), ImportedError> {
    for (at, certificate) in chain.iter().enumerate() {
        let whose = || match at {
            0 => "the certificate's key".to_owned(),
            _ => format!("the key of certificate {} of the chain file", at + 1),
        };
        let weak = |seen: String| Err(ImportedError::Weak { whose: whose(), seen });
        match certificate.public_key().parsed() {
            Ok(PublicKey::RSA(rsa)) => {
                let bits = rsa.key_size();
                if !RSA_BITS.contains(&bits) {
                    return weak(format!("RSA of {bits} bits"));
                }
            }
            Ok(PublicKey::EC(point)) => {
                // Whole bytes of a coordinate: 66 of them, 528 bits, are P-521.
                if !matches!(point.key_size(), 256 | 384) {
                    return weak(format!("ECDSA with coordinates of {} bits", point.key_size()));
                }
            }
            _ => return weak(format!("of the kind {}", certificate.public_key().algorithm.algorithm)),
        }
        // What signs itself is trusted by being known, not by its signature.
        let own = certificate.issuer() == certificate.subject();
        if !own && BROKEN_SIGNATURES.contains(&certificate.signature_algorithm.algorithm.to_id_string().as_str()) {
            return Err(ImportedError::BrokenSignature { at: at + 1 });
        }
    }
    Ok(())
}

/// What decides is what the edges run.
fn usable(der: &[Vec<u8>], key: &Secret) -> Result<(), ImportedError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let chain = der.iter().map(|d| CertificateDer::from(d.clone())).collect();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.expose().to_vec()));
    match CertifiedKey::from_der(chain, key, &provider) {
        Ok(_) => Ok(()),
        Err(rustls::Error::InconsistentKeys(_)) => Err(ImportedError::OtherKey),
        Err(e) => Err(ImportedError::Unusable { why: e.to_string() }),
    }
}

fn names(leaf: &X509Certificate<'_>) -> Result<Vec<String>, ImportedError> {
    let all = match leaf.subject_alternative_name() {
        Ok(Some(san)) => san.value.general_names.clone(),
        _ => Vec::new(),
    };
    let mut dns: Vec<String> = all.iter().filter(|n| matches!(n, GeneralName::DNSName(_))).map(name).collect();
    dns.sort();
    dns.dedup();
    if dns.is_empty() {
        return Err(ImportedError::NoNames { seen: all.iter().map(name).collect() });
    }
    Ok(dns)
}

fn pem(label: &str, der: &[u8]) -> String {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    let mut out = format!("-----BEGIN {label}-----\n");
    for line in text.as_bytes().chunks(64) {
        out.push_str(&String::from_utf8_lossy(line));
        out.push('\n');
    }
    out.push_str(&format!("-----END {label}-----\n"));
    out
}

#[cfg(test)]
mod tests;
