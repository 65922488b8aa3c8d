//! What is said of a domain's other half.

use super::document::PartnerView;
use crate::model::claim::Claim;
use crate::model::hostname::Hostname;
use crate::model::moment::Moment;
use crate::store::views::{DomainRow, PartnerRow};

/// The parts of a domain's document that tell of its other half.
#[derive(Default)]
pub(super) struct Pair {
    pub partner: Option<PartnerView>,
    pub redirect_to: Option<Hostname>,
    pub redirecting: bool,
}

/// `serving`: whether visitors of the domain itself are served.
pub(super) fn of(row: &DomainRow, serving: bool, now: Moment) -> Pair {
    let Some(half) = &row.partner else { return Pair::default() };
    let redirect_to = row.redirects.then(|| half.hostname.clone());
    let redirecting = row.redirects && serving && is_served(half, now);
    let name = half.hostname.display();
    let sentence = match (row.redirects, half.redirects) {
        (true, _) if redirecting => format!("Visitors are sent on to {name}."),
        (true, _) => {
            format!("Visitors are sent on to {name} as soon as it is served; until then this name is served itself.")
        }
        (false, true) if serving => format!("Visitors of {name} are sent here."),
        (false, true) => format!("Visitors of {name} are sent here as soon as this name is served."),
        (false, false) => format!("Belongs together with {name}, which has records and a certificate of its own."),
    };
    let partner = PartnerView {
        id: half.id.clone(),
        hostname: half.hostname.clone(),
        hostname_display: name,
        claim: half.claim,
        sentence,
    };
    Pair { partner: Some(partner), redirect_to, redirecting }
}

/// Every edge once had its certificate, and that is valid: each edge decides for itself by what it serves.
fn is_served(half: &PartnerRow, now: Moment) -> bool {
    half.claim == Claim::Live && half.active_since.is_some() && half.certificate_until.is_some_and(|until| until > now)
}
