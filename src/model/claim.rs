//! The claim axis: what one tenant's claim on one hostname can be, and which steps lead from where to where.

use super::vocabulary::vocabulary;

vocabulary! {
    /// Where a claim stands.
    Claim {
        /// Records are to be published; looks go on at their pace.
        AwaitingDns = "awaiting_dns",
        /// Proven, holder of the name, waiting for its first certificate.
        Queued = "queued",
        /// Has had a certificate.
        Live = "live",
        /// Let go; undo is still possible.
        Releasing = "releasing",
        /// Gone; key and certificate destroyed.
        Released = "released",
        /// The attempt's deadline passed; a new attempt re-opens it.
        Expired = "expired",
        /// Removed before proof.
        Withdrawn = "withdrawn",
    }

    /// What moves a claim.
    ClaimStep {
        /// All checks passed and the name was free to hold.
        Prove = "prove",
        /// The first chain was stored.
        GoLive = "go_live",
        /// The TXT is positively gone before the first certificate.
        LoseProof = "lose_proof",
        /// The attempt's deadline passed.
        Expire = "expire",
        /// A new attempt on an expired claim.
        Reopen = "reopen",
        /// The tenant (or an operator) removes it.
        Remove = "remove",
        /// The grace after removal is over.
        Finish = "finish",
        /// A removal is undone: the certificate is still there.
        Return = "return",
        /// A removal is undone before there was a certificate: the records are looked at anew.
        ReturnUnserved = "return_unserved",
    }
}

/// A step that this state does not allow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a claim that is {from} cannot {step}")]
pub struct RefusedStep {
    /// The state.
    pub from: Claim,
    /// What was tried.
    pub step: ClaimStep,
}

impl Claim {
    /// Whether the claim still stands for a tenant and name: only one such may exist (a partial unique index). A name on its
    /// way out can be claimed anew, with a new value.
    pub fn is_open(self) -> bool {
        !matches!(self, Claim::Releasing | Claim::Released | Claim::Withdrawn)
    }

    /// The state after a step.
    pub fn after(self, step: ClaimStep) -> Result<Claim, RefusedStep> {
        use Claim::{AwaitingDns, Expired, Live, Queued, Released, Releasing, Withdrawn};
        match (self, step) {
            (AwaitingDns, ClaimStep::Prove) => Ok(Queued),
            (Queued, ClaimStep::GoLive) => Ok(Live),
            (Queued, ClaimStep::LoseProof) => Ok(AwaitingDns),
            (AwaitingDns, ClaimStep::Expire) => Ok(Expired),
            (Expired, ClaimStep::Reopen) => Ok(AwaitingDns),
            (AwaitingDns | Expired, ClaimStep::Remove) => Ok(Withdrawn),
            (Queued | Live, ClaimStep::Remove) => Ok(Releasing),
            (Releasing, ClaimStep::Finish) => Ok(Released),
            (Releasing, ClaimStep::Return) => Ok(Live),
            (Releasing, ClaimStep::ReturnUnserved) => Ok(AwaitingDns),
            (from, step) => Err(RefusedStep { from, step }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_answers_every_step_and_the_closed_ones_refuse_all() {
        let mut allowed = Vec::new();
        for &from in Claim::ALL {
            for &step in ClaimStep::ALL {
                match from.after(step) {
                    Ok(to) => allowed.push(format!("{from} {step} {to}")),
                    Err(e) => assert_eq!((e.from, e.step), (from, step)),
                }
            }
        }
        assert_eq!(
            allowed,
            [
                "awaiting_dns prove queued",
                "awaiting_dns expire expired",
                "awaiting_dns remove withdrawn",
                "queued go_live live",
                "queued lose_proof awaiting_dns",
                "queued remove releasing",
                "live remove releasing",
                "releasing finish released",
                "releasing return live",
                "releasing return_unserved awaiting_dns",
                "expired reopen awaiting_dns",
                "expired remove withdrawn",
            ]
        );
    }
}
