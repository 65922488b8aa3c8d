//! News for a domain from somebody else's step: another claim proved its name, or its partner changed.
//!
//! Who has news writes a notice beside their own outcome; the domain's own next step puts it into its history. So each history
//! is written through the one door only, and no step in flight loses an order over it. A notice names hostnames, never a tenant.

use serde_json::json;

use super::hostname::Hostname;
use super::outcome::NewEvent;
use super::vocabulary::vocabulary;

vocabulary! {
    /// What the news is.
    NoticeKind {
        /// Somebody else has published an ownership record of their own for the name that this domain holds.
        ProvedElsewhere = "proved_elsewhere",
        /// Somebody else has proved a name beneath the one that this domain holds.
        ClaimBeneath = "claim_beneath",
        /// This domain's ownership record is gone while somebody else's is there.
        HandoverBegan = "handover_began",
        /// The name stays.
        HandoverEnded = "handover_ended",
        /// Linked with its other half.
        Paired = "paired",
        /// The other half was removed.
        PartnerGone = "partner_gone",
        /// Visitors are sent to the other half.
        RedirectSet = "redirect_set",
        /// They are not any more.
        RedirectDropped = "redirect_dropped",
    }
}

/// A notice that was not heard yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Its row.
    pub id: String,
    /// What it is.
    pub kind: NoticeKind,
    /// Who made it happen.
    pub actor: String,
    /// The name it is about.
    pub hostname: Hostname,
}

/// A notice to leave for whoever holds a name, unless that is the same tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewNotice {
    /// The name.
    pub to_holder_of: Hostname,
    /// What it is.
    pub kind: NoticeKind,
    /// What it is said once for: it is said again only for something else.
    pub about: String,
    /// The name it is about.
    pub hostname: Hostname,
}

impl Notice {
    /// What the history says of it.
    pub fn event(&self) -> NewEvent {
        let name = &self.hostname;
        let cause = match self.kind {
            NoticeKind::ProvedElsewhere => format!(
                "somebody else has published an ownership record of their own for {name}; you hold the name as long as yours stays"
            ),
            NoticeKind::ClaimBeneath => {
                format!("somebody else has proved {name}, a name beneath this one; nothing changes here")
            }
            NoticeKind::HandoverBegan => format!(
                "your ownership record for {name} is gone and somebody else's is there; unless yours comes back, the name \
                 can move to them after 72 hours"
            ),
            NoticeKind::HandoverEnded => format!("{name} stays here; nobody is about to take it over any more"),
            NoticeKind::Paired => format!("linked with {name}; each has its own records and certificate"),
            NoticeKind::PartnerGone => format!("{name} is linked no longer; no visitors are sent from one to the other"),
            NoticeKind::RedirectSet => format!("visitors are sent on to {name} as soon as it is served"),
            NoticeKind::RedirectDropped => format!("visitors are not sent on to {name} any more"),
        };
        NewEvent { kind: self.kind.as_str(), actor: self.actor.clone(), cause, detail: json!({ "hostname": name }) }
    }
}
