//! By what right the next certificate of a name is ordered: what stands against it, and whether it takes of the budget.

use super::super::claim::Claim;
use super::super::domain::{GrantState, Situation, TieState};
use super::super::id::CertificateId;
use super::super::moment::Moment;
use super::super::order::{Lane, Order, OrderState, Purpose};
use super::super::tie;
use super::schedule::Schedule;

/// What is known of the renewal of a domain's certificate in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renewal {
    /// When, and why then.
    pub schedule: Schedule,
    /// Whether the CA did not take the certificate as one to be replaced: then its successor is ordered like any other.
    pub refused: bool,
    /// The certificate before, until every counted edge has proven this one.
    pub former: Option<CertificateId>,
    /// While set, edges are not yet told to serve this one: not before then.
    pub switch_at: Option<Moment>,
    /// The replacement out of turn that asks for it.
    pub reissue: Option<String>,
    /// Whether that cannot wait behind those whose certificate is due.
    pub hurries: bool,
}

/// Why no successor is ordered although its moment has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Nothing ties the name to its tenant.
    TieLost,
}

/// What a domain's next certificate rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claims {
    /// Nothing is due before then.
    Later(Moment),
    /// It is to be ordered now, for this reason.
    Now(Purpose),
    /// It would be due, and is not ordered.
    Not(Refused),
}

impl Situation {
    /// Whether the next certificate of a live name is to be ordered.
    pub fn renewal_claims(&self, now: Moment) -> Claims {
        let Some(renewal) = self.renewal.as_ref().filter(|_| self.domain.claim == Claim::Live) else {
            return Claims::Later(Moment::NEVER);
        };
        // One at a time: edges are still on their way from the one before to this one, and nothing may stop that.
        if renewal.switch_at.is_some() {
            return Claims::Later(Moment::NEVER);
        }
        let purpose = match &renewal.reissue {
            Some(_) => Purpose::Reissue,
            None if now >= renewal.schedule.at => Purpose::Renew,
            None => return Claims::Later(renewal.schedule.at),
        };
        if self.domain.tie == TieState::Lost { Claims::Not(Refused::TieLost) } else { Claims::Now(purpose) }
    }

    /// Whether the tie, as it was last seen, is good for an order: before the first certificate the ownership record alone is; after
    /// it whatever still ties the name.
    pub fn is_tied(&self) -> bool {
        match self.domain.claim {
            Claim::Live => tie::holds(&self.domain),
            _ => self.domain.owned(),
        }
    }

    /// What an order names as the certificate that it replaces (RFC 9773 §5): the one in use, where the same account got it and
    /// the CA did not refuse that before.
    pub fn replaces(&self, order: &Order) -> Option<&str> {
        let (renewal, in_use) = (self.renewal.as_ref()?, self.certificate.as_ref()?);
        let same = order.purpose != Purpose::First && in_use.issuer_id.as_ref() == Some(&order.issuer_id);
        in_use.ari_id.as_deref().filter(|_| same && !renewal.refused)
    }

    /// Whether an order that the CA takes as a replacement is exempt from its limits: the CA asked for it, by a window that has
    /// begun.
    pub fn is_asked_for(&self, order: &Order, now: Moment) -> bool {
        let begun = |r: &Renewal| r.schedule.window.is_some_and(|w| w.start <= now);
        self.replaces(order).is_some() && self.renewal.as_ref().is_some_and(begun)
    }

    /// Whether the order needs no grant of the dispatcher's: it is exempt, at a CA that was seen to keep to that, and nothing has
    /// gone wrong with it. Whatever else happens it waits in line like all others.
    pub fn takes_no_budget(&self, order: &Order, now: Moment) -> bool {
        self.issuer.honours_replaces && !self.issuer.clouded && self.domain.failures == 0 && self.is_asked_for(order, now)
    }

    /// Whether the order is a replacement that nobody asks for any more, and nothing of it has reached the CA.
    pub fn is_given_up(&self, order: &Order) -> bool {
        let asked = self.renewal.as_ref().is_some_and(|r| r.reissue.is_some());
        let called = || self.grant.as_ref().is_some_and(|g| g.state == GrantState::Used);
        order.purpose == Purpose::Reissue
            && !asked
            && (order.state == OrderState::Waiting || order.state == OrderState::Granted && !called())
    }

    /// The lane of the order for the next certificate: what is not due yet keeps nobody waiting whose certificate is, unless an operator
    /// said that it cannot wait.
    pub fn lane_of(&self, purpose: Purpose, now: Moment) -> Lane {
        let due = self.renewal.as_ref().is_none_or(|r| r.schedule.at <= now || r.hurries);
        if purpose == Purpose::Reissue && !due { Lane::Bulk } else { Lane::Renewal }
    }

    /// When the waiting order goes over to the lane of renewals, where it stands in another: when it is due, and at once where an operator
    /// said that it cannot wait.
    pub fn hurries_at(&self) -> Option<Moment> {
        let order = self.order.as_ref().filter(|o| o.state == OrderState::Waiting && o.lane != Lane::Renewal)?;
        let renewal = self.renewal.as_ref().filter(|_| order.purpose != Purpose::First)?;
        Some(if renewal.hurries { renewal.schedule.at.min(order.state_since) } else { renewal.schedule.at })
    }

    /// Whether edges are still on their way to the certificate in use.
    pub fn is_rolling_out(&self) -> bool {
        let renewed = |r: &Renewal| r.former.is_some() || r.switch_at.is_some();
        self.certificate.is_some() && (self.domain.active_since.is_none() || self.renewal.as_ref().is_some_and(renewed))
    }

    /// The moment before which the certificate in use is not served, while edges still serve the one before it.
    pub fn switch_at(&self) -> Option<Moment> {
        self.renewal.as_ref().and_then(|r| r.switch_at)
    }
}
