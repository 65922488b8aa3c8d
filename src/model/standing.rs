//! Where a domain stands, in one stable word: what blocks it, and whose move it is.
//!
//! [`standing`] is the one function that decides it. The sentence on a page is worded from it, and the one door writes it into
//! the domain's row together with every outcome ([`after`]), so that a fleet of any size is counted and listed by an index. It
//! knows neither the time nor the edges: a certificate that ended and an edge that is behind are overlays, asked for where a
//! page shows them. How to get it wrong: decide whose move it is anywhere else.

use super::bulk::Hold;
use super::claim::Claim;
use super::domain::{Domain, Situation};
use super::evidence::{Actor, Check, Evidence, Verdict};
use super::moment::Moment;
use super::order::OrderState;
use super::outcome::{Outcome, Write};
use super::reason::Reason;

macro_rules! standings {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $acts:ident, $sentence:literal;)*) => {
        /// Where a domain stands.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Standing {
            /// A finding of the last look stands in the way.
            Found(Reason),
            $($(#[$doc])* $name,)*
        }

        impl Standing {
            /// Those that are no finding of a look.
            pub const OWN: &'static [Standing] = &[$(Standing::$name,)*];

            /// The stable word.
            pub const fn code(self) -> &'static str {
                match self { Standing::Found(reason) => reason.code(), $(Standing::$name => $code,)* }
            }

            /// Whose move it is.
            pub const fn acts(self) -> Actor {
                match self { Standing::Found(reason) => reason.acts(), $(Standing::$name => Actor::$acts,)* }
            }

            /// One plain sentence.
            pub const fn sentence(self) -> &'static str {
                match self { Standing::Found(reason) => reason.sentence(), $(Standing::$name => $sentence,)* }
            }
        }
    };
}

standings! {
    /// Claimed, nobody has looked.
    NotLookedYet = "not_looked_yet", Tenant, "Nobody has looked for the records yet.";
    /// Every record is right, the claim is about to move on.
    RecordsRight = "records_right", Nobody, "Every record is right; the claim moves on in a moment.";
    /// Waits for a grant, or has one in hand.
    OrderWaiting = "order_waiting", Nobody, "The certificate waits for its turn in the order budget.";
    /// Its tenant paused the import that brought the name.
    ImportPaused = "import_paused", Tenant, "The import that brought the name is paused by its tenant; no certificate is ordered before it goes on.";
    /// The operator paused the import that brought the name.
    ImportPausedByOperator = "import_paused_by_operator", Platform, "The import that brought the name is paused by the operator; no certificate is ordered before it goes on.";
    /// The import that brought the name was given up.
    ImportCancelled = "import_cancelled", Tenant, "The import that brought the name was cancelled; no certificate is ordered unless the name is claimed by itself.";
    /// The last order failed.
    OrderRetried = "order_retried", Ca, "The last order did not succeed and is tried again.";
    /// The CA took the order.
    OrderPlaced = "order_placed", Nobody, "The certificate is being ordered.";
    /// The CA looks at the challenge.
    CaValidates = "ca_validates", Nobody, "The certificate authority is checking the name.";
    /// The CA signs.
    CaSigns = "ca_signs", Nobody, "The certificate authority is signing.";
    /// Issued, not yet live.
    CertificateComes = "certificate_comes", Nobody, "The certificate is on its way.";
    /// Live without a certificate.
    NoCertificate = "no_certificate", Platform, "The name is live and has no certificate in use.";
    /// The edges are being told.
    RollingOut = "rolling_out", Nobody, "The certificate is on its way to the edges.";
    /// The certificate in use is good, and the next one did not come yet.
    RenewalRetried = "renewal_retried", Ca, "The last try at a renewal did not succeed; it is tried again while the certificate lasts.";
    /// All is well.
    Serving = "serving", Nobody, "Visitors are served.";
    /// Removed, kept back.
    Releasing = "releasing", Nobody, "The domain was removed; its name is kept back for a while.";
    /// Gone.
    Released = "released", Nobody, "The domain was removed and the name is free.";
    /// The deadline passed.
    Expired = "attempt_expired", Tenant, "The records were not published in time.";
    /// Removed before proof.
    Withdrawn = "withdrawn", Nobody, "The claim was withdrawn before it was proven.";
}

impl Standing {
    /// Where a name stands whose import is held.
    pub const fn of_hold(hold: Hold) -> Standing {
        match hold {
            Hold::ByTenant => Standing::ImportPaused,
            Hold::ByOperator => Standing::ImportPausedByOperator,
            Hold::Cancelled => Standing::ImportCancelled,
        }
    }

    /// The standing of this word.
    pub fn from_code(code: &str) -> Option<Standing> {
        let own = Standing::OWN.iter().copied().find(|s| s.code() == code);
        own.or_else(|| Reason::try_from(code.to_owned()).ok().map(Standing::Found))
    }

    /// Whether something keeps visitors from being served that is not simply over.
    pub fn is_stuck(self) -> bool {
        !matches!(
            self,
            Standing::Serving
                | Standing::RenewalRetried
                | Standing::Releasing
                | Standing::Released
                | Standing::Expired
                | Standing::Withdrawn
        )
    }

    /// Whether visitors are served and nothing stands in the way of that.
    pub fn serves(self) -> bool {
        matches!(self, Standing::Serving | Standing::RenewalRetried)
    }
}

/// What the standing is decided by.
#[derive(Clone, Copy, Debug)]
pub struct Stands<'a> {
    /// Where the claim stands.
    pub claim: Claim,
    /// The last look.
    pub evidence: &'a [Evidence],
    /// State of the open order, or of the last one.
    pub order: Option<OrderState>,
    /// What the import that brought the name is held by.
    pub held: Option<Hold>,
    /// Orders that failed since the last success.
    pub failures: i64,
    /// Whether a certificate is in use.
    pub certificate: bool,
    /// Whether every counted edge once had it.
    pub rolled_out: bool,
}

/// Decides where a domain stands.
pub fn standing(s: &Stands<'_>) -> Standing {
    match s.claim {
        Claim::AwaitingDns if s.evidence.is_empty() => Standing::NotLookedYet,
        Claim::AwaitingDns => found(blocker(s.evidence)).unwrap_or(Standing::RecordsRight),
        Claim::Queued => queued(s),
        Claim::Live if !s.certificate => Standing::NoCertificate,
        Claim::Live => {
            let rest = match s.rolled_out {
                true if s.failures > 0 => Standing::RenewalRetried,
                true => Standing::Serving,
                false => Standing::RollingOut,
            };
            let away = || routing_fault(s.evidence).or_else(|| fault(s.evidence));
            found(contested(s.evidence).or_else(away)).unwrap_or(rest)
        }
        Claim::Releasing => Standing::Releasing,
        Claim::Released => Standing::Released,
        Claim::Expired => Standing::Expired,
        Claim::Withdrawn => Standing::Withdrawn,
    }
}

fn found(by: Option<&Evidence>) -> Option<Standing> {
    by.map(|e| Standing::Found(e.finding.reason))
}

fn queued(s: &Stands<'_>) -> Standing {
    if let Some(stands) = found(queued_blocker(s.evidence, s.order)) {
        return stands;
    }
    if let Some(hold) = s.held.filter(|_| is_ours(s.order)) {
        return Standing::of_hold(hold);
    }
    match s.order {
        Some(OrderState::Failed | OrderState::Lost) => Standing::OrderRetried,
        // A grant in hand changes nothing about whose move it is; the dispatcher gives and takes them without a step.
        None | Some(OrderState::Waiting | OrderState::Granted) if s.failures > 0 => Standing::OrderRetried,
        None | Some(OrderState::Waiting | OrderState::Granted) => Standing::OrderWaiting,
        Some(OrderState::Placed) => Standing::OrderPlaced,
        Some(OrderState::Authorizing) => Standing::CaValidates,
        Some(OrderState::Ready | OrderState::Finalizing) => Standing::CaSigns,
        Some(OrderState::Issued) => Standing::CertificateComes,
    }
}

/// What keeps a queued name from its order: before the CA has it, whatever does not pass; after that, a fault.
pub(super) fn queued_blocker(evidence: &[Evidence], order: Option<OrderState>) -> Option<&Evidence> {
    if is_ours(order) { blocker(evidence) } else { fault(evidence) }
}

/// Whether the CA does not have the order, so that it can still be kept from it.
fn is_ours(order: Option<OrderState>) -> bool {
    matches!(order, None | Some(OrderState::Waiting | OrderState::Granted | OrderState::Failed | OrderState::Lost))
}

/// The finding that stands in the way, most certain first: a fault to correct, then what is not there yet, then what could not
/// be looked at; within those, ownership before routing before CAA.
pub(super) fn blocker(evidence: &[Evidence]) -> Option<&Evidence> {
    let rank = |e: &&Evidence| {
        let verdict = match e.finding.verdict() {
            Verdict::Fail => 0,
            Verdict::Wait => 1,
            Verdict::Unknown => 2,
            Verdict::Pass => 3,
        };
        (verdict, e.finding.check)
    };
    evidence.iter().filter(|e| e.finding.verdict() != Verdict::Pass).min_by_key(rank)
}

/// The blocker, where it is a fault.
pub(super) fn fault(evidence: &[Evidence]) -> Option<&Evidence> {
    blocker(evidence).filter(|e| e.finding.verdict() == Verdict::Fail)
}

/// That somebody else is about to take the name over: more pressing than where it leads by now.
pub(super) fn contested(evidence: &[Evidence]) -> Option<&Evidence> {
    evidence.iter().find(|e| e.finding.reason == Reason::NameContested)
}

/// A fault of the way to us.
pub(super) fn routing_fault(evidence: &[Evidence]) -> Option<&Evidence> {
    evidence.iter().find(|e| e.finding.check == Check::Routing && e.finding.verdict() == Verdict::Fail)
}

/// The standing of a domain's row next to the state of its open order, or of its last, and what its import is held by.
pub fn of_row(d: &Domain, order: Option<OrderState>, held: Option<Hold>) -> Standing {
    standing(&Stands {
        claim: d.claim,
        evidence: &d.evidence,
        order,
        held,
        failures: d.failures,
        certificate: d.certificate_id.is_some(),
        rolled_out: d.active_since.is_some(),
    })
}

/// Where a domain stands once an outcome is recorded, and until when its certificate lasts.
pub fn after(s: &Situation, out: &Outcome) -> (Standing, Option<Moment>) {
    let mut order = s.order.as_ref().map(|o| o.state);
    let mut until = s.certificate.as_ref().map(|c| c.not_after);
    for write in &out.writes {
        match write {
            Write::OpenOrder { .. } => order = Some(OrderState::Waiting),
            Write::Order { order: o, .. } => order = Some(o.state),
            Write::StoreCertificate { certificate, .. } => until = Some(certificate.not_after),
            _ => {}
        }
    }
    let in_use = out.domain.claim == Claim::Live && out.domain.certificate_id.is_some();
    (of_row(&out.domain, order, s.held), until.filter(|_| in_use))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_its_own_and_leads_back() {
        let mut all: Vec<Standing> = Standing::OWN.to_vec();
        all.extend(Reason::ALL.iter().copied().map(Standing::Found));
        for standing in &all {
            assert_eq!(Standing::from_code(standing.code()), Some(*standing), "{}", standing.code());
            assert!(standing.sentence().ends_with('.'), "{}", standing.sentence());
        }
        assert_eq!(Standing::from_code(""), None);
        assert_eq!(Standing::from_code("'; DROP TABLE domains"), None);
    }

    #[test]
    fn a_failed_order_stays_the_cas_move_until_one_succeeds() {
        let queued = |order, failures| Stands {
            claim: Claim::Queued,
            evidence: &[],
            order,
            held: None,
            failures,
            certificate: false,
            rolled_out: false,
        };
        assert_eq!(standing(&queued(Some(OrderState::Waiting), 0)), Standing::OrderWaiting);
        assert_eq!(standing(&queued(Some(OrderState::Waiting), 2)), Standing::OrderRetried);
        assert_eq!(standing(&queued(Some(OrderState::Granted), 2)), Standing::OrderRetried);
        assert_eq!(standing(&queued(Some(OrderState::Failed), 1)).acts(), Actor::Ca);
        assert_eq!(standing(&queued(Some(OrderState::Placed), 2)), Standing::OrderPlaced);
    }

    #[test]
    fn a_held_import_stands_before_its_names_turns_and_not_before_what_the_ca_has() {
        let stands = |order, hold| {
            let facts = Stands {
                claim: Claim::Queued,
                evidence: &[],
                order,
                held: Some(hold),
                failures: 3,
                certificate: false,
                rolled_out: false,
            };
            (standing(&facts), standing(&facts).acts())
        };
        for order in [None, Some(OrderState::Waiting), Some(OrderState::Granted), Some(OrderState::Lost)] {
            assert_eq!(stands(order, Hold::ByTenant), (Standing::ImportPaused, Actor::Tenant));
            assert_eq!(stands(order, Hold::ByOperator), (Standing::ImportPausedByOperator, Actor::Platform));
            assert_eq!(stands(order, Hold::Cancelled), (Standing::ImportCancelled, Actor::Tenant));
        }
        assert_eq!(stands(Some(OrderState::Placed), Hold::Cancelled).0, Standing::OrderPlaced);
    }
}
