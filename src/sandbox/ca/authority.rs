//! The CA's own keys: a root, an intermediate that signs, and the certificate its server shows.

use std::time::Duration;

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    IsCa, KeyPair, KeyUsagePurpose, PublicKeyData, SerialNumber,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use time::OffsetDateTime;

use crate::model::moment::Moment;

/// The CA could not make a key or a certificate.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// From the certificate library.
    #[error("cannot make the certificate of {what}")]
    Certificate {
        /// Whose.
        what: String,
        /// Why.
        source: rcgen::Error,
    },
    /// A date no certificate can carry.
    #[error("{0} seconds after 1970 is no date a certificate can carry")]
    Date(i64),
}

/// The root and the intermediate below it.
pub struct Authority {
    root: CertifiedIssuer<'static, KeyPair>,
    intermediate: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    /// Makes new keys (P-256). Their certificates hold from 1975 to 4096, so that a hand-driven clock at any moment and the
    /// system clock of a TLS client both find them valid.
    pub fn generate(label: &str) -> Result<Self, AuthorityError> {
        let because = |what: &'static str| move |source| AuthorityError::Certificate { what: what.to_owned(), source };
        let root_key = KeyPair::generate().map_err(because("the root"))?;
        let root = CertifiedIssuer::self_signed(issuer_params(&format!("{label} root"), 1), root_key);
        let root = root.map_err(because("the root"))?;
        let key = KeyPair::generate().map_err(because("the intermediate"))?;
        let intermediate = CertifiedIssuer::signed_by(issuer_params(&format!("{label} intermediate"), 0), key, &root);
        Ok(Authority { intermediate: intermediate.map_err(because("the intermediate"))?, root })
    }

    /// The root, to be trusted.
    pub fn root_pem(&self) -> String {
        self.root.pem()
    }

    /// The chain of a leaf as clients download it: the leaf, then the intermediate.
    pub fn chain_pem(&self, leaf: &Certificate) -> String {
        format!("{}{}", leaf.pem(), self.intermediate.pem())
    }

    /// Signs a certificate for `names` over somebody's public key.
    pub fn sign(
        &self,
        names: &[String],
        key: &impl PublicKeyData,
        serial: [u8; 16],
        not_before: Moment,
        not_after: Moment,
    ) -> Result<Certificate, AuthorityError> {
        let failed = |source| AuthorityError::Certificate { what: names.join(", "), source };
        let mut params = leaf_params(names).map_err(failed)?;
        params.serial_number = Some(SerialNumber::from_slice(&serial));
        params.not_before = date(not_before)?;
        params.not_after = date(not_after)?;
        params.signed_by(key, &self.intermediate).map_err(failed)
    }

    /// A chain and key in PEM for somebody's server, valid for so many days from `now`.
    pub fn identity_pem(
        &self,
        names: &[String],
        serial: [u8; 16],
        now: Moment,
        days: u32,
    ) -> Result<(String, String), AuthorityError> {
        let failed = |source| AuthorityError::Certificate { what: names.join(", "), source };
        let key = KeyPair::generate().map_err(failed)?;
        let until = now + Duration::from_secs(u64::from(days) * 86_400);
        let leaf = self.sign(names, &key, serial, now, until)?;
        Ok((self.chain_pem(&leaf), key.serialize_pem()))
    }

    /// A chain and key for the CA's own server at `names` (host names and addresses).
    pub fn server_identity(
        &self,
        names: &[&str],
    ) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), AuthorityError> {
        let (certificate, key) = self.server_certificate(names)?;
        let chain = vec![certificate.into(), self.intermediate.der().clone()];
        Ok((chain, key.into()))
    }

    /// The same as PEM texts: chain and key, for a server in another process.
    pub fn server_identity_pem(&self, names: &[&str]) -> Result<(String, String), AuthorityError> {
        let (certificate, key) = self.server_certificate(names)?;
        Ok((self.chain_pem(&certificate), key.serialize_pem()))
    }

    fn server_certificate(&self, names: &[&str]) -> Result<(Certificate, KeyPair), AuthorityError> {
        let failed = |source| AuthorityError::Certificate { what: names.join(", "), source };
        let key = KeyPair::generate().map_err(failed)?;
        let names: Vec<String> = names.iter().map(|&n| n.to_owned()).collect();
        let certificate = leaf_params(&names).and_then(|p| p.signed_by(&key, &self.intermediate)).map_err(failed)?;
        Ok((certificate, key))
    }
}

fn issuer_params(name: &str, below: u8) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(below));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    params.use_authority_key_identifier_extension = true;
    params
}

fn leaf_params(names: &[String]) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = DistinguishedName::new();
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    Ok(params)
}

fn date(at: Moment) -> Result<OffsetDateTime, AuthorityError> {
    OffsetDateTime::from_unix_timestamp(at.secs()).map_err(|_| AuthorityError::Date(at.secs()))
}
