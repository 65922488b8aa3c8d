//! Links to a DNS provider that sets the records itself (Domain Connect): signed, and leading back to a page of ours alone.

use crate::app::show::DomainView;
use crate::model::domain_connect::{Offer, PROOF, TENANT, apply};
use crate::model::records::OWNERSHIP_PREFIX;
use crate::vault::request_signing::RequestSigner;

/// Makes the links.
#[derive(Debug)]
pub struct Connect {
    /// Who we are to providers.
    pub provider_id: String,
    /// What our template is called.
    pub service_id: String,
    /// The label at which the public key is published.
    pub key_label: String,
    /// The zone in which each tenant has its own target; none where all share one, which the template names.
    pub tenant_zone: Option<String>,
    /// Signs the links.
    pub signer: RequestSigner,
}

impl Connect {
    /// The link that sets the records of a domain, after which the browser comes back to `back`; none for a name that the
    /// template does not fit: the zone itself, a target of another time, a name outside of the zone.
    pub(super) fn link(&self, view: &DomainView, zone: &str, offer: &Offer, back: &str) -> Option<String> {
        let host = view.hostname.as_str().strip_suffix(zone)?.strip_suffix('.')?;
        let value = |kind: &str| view.records.iter().find(|r| r.kind == kind).map(|r| r.value.as_str());
        let proof = value("TXT")?.strip_prefix(OWNERSHIP_PREFIX)?;
        let target = value("CNAME")?.trim_end_matches('.');
        let mut parameters = vec![("domain", zone), ("host", host), (PROOF, proof), ("redirect_uri", back)];
        if let Some(tenants) = &self.tenant_zone {
            parameters.push((TENANT, target.strip_suffix(tenants.as_str())?.strip_suffix('.')?));
        }
        let canonical = apply::canonical(parameters);
        // A key that was read signs; if the library will not, the records can still be copied.
        let signature = self.signer.sign(&canonical).ok()?;
        offer.link(&self.provider_id, &self.service_id, &apply::signed(&canonical, &signature, &self.key_label))
    }
}
