//! Links to a DNS provider that sets the records itself (Domain Connect): signed, and leading back to a page of ours alone.

use super::problem::Problem;
use super::state::WebState;
use crate::app::connect;
use crate::app::show::DomainView;
use crate::model::domain_connect::{Offer, PROOF, Services, TENANT, apply};
use crate::model::records::{ApexRoute, OWNERSHIP_PREFIX};
use crate::vault::request_signing::RequestSigner;

/// Makes the links.
#[derive(Debug)]
pub struct Connect {
    /// Who we are to providers.
    pub provider_id: String,
    /// What our templates are called.
    pub services: Services,
    /// The label at which the public key is published.
    pub key_label: String,
    /// The zone in which each tenant has its own target; none where all share one, which the template names.
    pub tenant_zone: Option<String>,
    /// Signs the links.
    pub signer: RequestSigner,
}

/// An offer of a provider, with the link.
pub(super) struct Made {
    pub(super) zone: String,
    pub(super) offer: Offer,
    pub(super) link: String,
}

/// The link for a domain's records, where its provider sets them itself and there is something to set; the browser comes back to
/// `back`.
pub(super) async fn offered(state: &WebState, view: &DomainView, back: &str) -> Result<Option<Made>, Problem> {
    let Some(maker) = state.settings.connect.as_ref().filter(|_| view.wants_records() && !view.records_are_right()) else {
        return Ok(None);
    };
    let found = connect::offer(&state.app.store, &view.id).await?;
    Ok(found.and_then(|(zone, offer)| {
        Some(Made { link: maker.link(view, &state.settings.apex, &zone, &offer, back)?, zone, offer })
    }))
}

impl Connect {
    /// None for a name that no template fits: a target of another time, a name outside of the zone, a bare domain in a zone that
    /// is not its own, and a zone of its own beneath a registered domain, where the CNAME that we ask for may not stand.
    fn link(&self, view: &DomainView, apex: &ApexRoute, zone: &str, offer: &Offer, back: &str) -> Option<String> {
        let name = view.hostname.as_str();
        let value = |kind: &str| view.records.iter().find(|r| r.kind == kind).map(|r| r.value.as_str());
        let proof = value("TXT")?.strip_prefix(OWNERSHIP_PREFIX)?;
        let mut parameters = vec![("domain", zone), (PROOF, proof), ("redirect_uri", back)];
        let service = if view.hostname.is_apex() {
            (name == zone).then_some(())?;
            match value("ALIAS") {
                None => {}
                Some(target) if apex.target.as_deref() == Some(target) => {}
                Some(target) => parameters.extend(self.tenant(target)?),
            }
            &self.services.zone
        } else {
            parameters.push(("host", name.strip_suffix(zone)?.strip_suffix('.')?));
            parameters.extend(self.tenant(value("CNAME")?)?);
            &self.services.beneath
        };
        let canonical = apply::canonical(parameters);
        // A key that was read signs; if the library will not, the records can still be copied.
        let signature = self.signer.sign(&canonical).ok()?;
        offer.link(&self.provider_id, service, &apply::signed(&canonical, &signature, &self.key_label))
    }

    /// The variable for a tenant's own target, where tenants have one; none for a target that the template does not lead to.
    fn tenant<'a>(&self, target: &'a str) -> Option<Option<(&'static str, &'a str)>> {
        let Some(zone) = &self.tenant_zone else { return Some(None) };
        let label = target.trim_end_matches('.').strip_suffix(zone.as_str())?.strip_suffix('.')?;
        Some(Some((TENANT, label)))
    }
}
