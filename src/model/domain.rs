//! A domain as the one door sees it: its row and everything next to it, read in one look at the store.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::bulk::Hold;
use super::claim::Claim;
use super::evidence::{Check, Evidence, Tie, Verdict};
use super::hostname::Hostname;
use super::id::{AttemptId, CertificateId, DomainId, GrantId, IssuerId, TenantId};
use super::letting_go::LettingGo;
use super::limits::Limits;
use super::look;
use super::moment::Moment;
use super::notice::Notice;
use super::order::{Lane, Order, OrderState, Purpose};
use super::renewal::{Renewal, Validity};
use super::standing::Standing;
use super::succession::Succession;
use super::tenant::TenantStatus;
use super::vocabulary::vocabulary;

vocabulary! {
    /// What the tenant was told to point the name at.
    RoutingMode {
        /// `slug.app.example`: a host of the tenant's own.
        PerTenant = "per_tenant",
        /// One target for everybody.
        Shared = "shared",
    }

    /// The tie between a name and its holder after proof.
    TieState {
        /// Seen to hold.
        Held = "held",
        /// Something is missing, not yet everything.
        Weakened = "weakened",
        /// Positively gone.
        Lost = "lost",
    }

    /// The state of a hostname's holding.
    HoldingState {
        /// A domain holds it.
        Held = "held",
        /// Let go, but its DNS may still point at us.
        Quarantined = "quarantined",
        /// Nobody's.
        Free = "free",
    }

    /// The state of a grant.
    GrantState {
        /// Not used yet.
        Open = "open",
        /// The call was made, or may have been.
        Used = "used",
        /// Surely not used.
        Returned = "returned",
    }

    /// An effect outside that changes something at a CA; its intent is recorded before it is done.
    Effect {
        /// newOrder. Not repeatable: an answer that never came is a lost order.
        NewOrder = "new_order",
        /// Telling the CA that the challenge can be fetched. The authorization is read again first.
        Announce = "announce",
        /// Sending the CSR. The order is read again first.
        Finalize = "finalize",
    }
}

/// What a request through the public name met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublicProbe {
    /// When.
    pub at: Moment,
    /// Whether every address answered with the stored certificate.
    pub ok: bool,
    /// One line an address.
    pub seen: Vec<String>,
}

/// The row of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the columns are explained in the schema")]
pub struct Domain {
    pub id: DomainId,
    pub tenant_id: TenantId,
    pub hostname: Hostname,
    pub lane: Lane,
    pub claim: Claim,
    pub claim_since: Moment,
    pub routing_mode: RoutingMode,
    pub target: String,
    pub attempt_id: AttemptId,
    pub evidence: Vec<Evidence>,
    pub looked_at: Option<Moment>,
    pub pace_from: Moment,
    pub check_asked_at: Option<Moment>,
    pub check_asked_by: Option<String>,
    pub public_probe: Option<PublicProbe>,
    pub tie: TieState,
    /// Microseconds.
    pub lost_for_us: i64,
    /// When the last look saw the tie lost; none where it did not.
    pub counted_until: Option<Moment>,
    pub due_at: Moment,
    pub generation: i64,
    pub settled: i64,
    pub failures: i64,
    pub event_seq: i64,
    /// Changes beside its own steps.
    pub edits: i64,
    pub certificate_id: Option<CertificateId>,
    pub active_since: Option<Moment>,
    pub released_at: Option<Moment>,
    pub created_at: Moment,
}

impl Domain {
    /// What a change with a condition is compared with: it rises with each event and each edit.
    pub fn version(&self) -> i64 {
        self.event_seq + self.edits
    }

    /// The evidence of one check.
    pub fn evidence_of(&self, check: Check) -> Option<&Evidence> {
        self.evidence.iter().find(|e| e.finding.check == check)
    }

    /// Whether every check passed when last looked at.
    pub fn all_pass(&self) -> bool {
        self.owned() && self.may_be_issued()
    }

    /// Whether the ownership record was seen when last looked at.
    pub fn owned(&self) -> bool {
        self.passed(Check::Ownership)
    }

    /// Whether the CA would meet what it needs, as last looked at: a way to us, and its permission.
    pub fn may_be_issued(&self) -> bool {
        self.passed(Check::Routing) && self.passed(Check::Caa)
    }

    fn passed(&self, check: Check) -> bool {
        self.evidence_of(check).is_some_and(|e| e.finding.verdict() == Verdict::Pass)
    }

    /// The last preflight, if it passed.
    pub fn preflight_passed(&self) -> Option<&Evidence> {
        self.evidence_of(Check::Preflight).filter(|e| e.finding.verdict() == Verdict::Pass)
    }

    /// Whether the ownership record is positively gone.
    pub fn proof_gone(&self) -> bool {
        self.evidence_of(Check::Ownership).is_some_and(|e| e.finding.reason.tie() == Tie::Gone)
    }

    /// Whether somebody asked for a look that was not made yet.
    pub fn check_is_owed(&self) -> bool {
        match (self.check_asked_at, self.looked_at) {
            (Some(asked), Some(looked)) => asked > looked,
            (Some(_), None) => true,
            (None, _) => false,
        }
    }
}

/// The present attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the columns are explained in the schema")]
pub struct Attempt {
    pub value: String,
    pub opened_at: Moment,
    pub deadline: Moment,
    pub proven_at: Option<Moment>,
}

/// The holding of the hostname, whoever has it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the columns are explained in the schema")]
pub struct Holding {
    pub domain_id: Option<DomainId>,
    pub tenant_id: Option<TenantId>,
    pub state: HoldingState,
    pub term: i64,
    pub since: Moment,
    /// The ownership value of the domain that holds or held it.
    pub value: Option<String>,
    /// The claim that is to hold it next.
    pub successor: Option<Succession>,
}

/// A grant in hand.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the columns are explained in the schema")]
pub struct Grant {
    pub id: GrantId,
    pub state: GrantState,
    pub expires_at: Moment,
    /// It was taken without the dispatcher: nothing of it counts until the CA says otherwise.
    pub free: bool,
}

/// The account that orders for this domain.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the columns are explained in the schema")]
pub struct Issuer {
    pub id: IssuerId,
    pub name: String,
    pub directory: String,
    pub caa_identities: Vec<String>,
    pub account_url: Option<String>,
    pub sealed_account_key: Option<Vec<u8>>,
    pub limits: Limits,
    pub roots: Option<String>,
    pub profile: Option<String>,
    /// Whether its last call failed: a success is news.
    pub clouded: bool,
    /// Whether it was seen to take an order as the replacement that it names.
    pub honours_replaces: bool,
}

/// The certificate in use.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the columns are explained in the schema")]
pub struct InUse {
    pub id: CertificateId,
    pub serial: String,
    pub not_before: Moment,
    pub not_after: Moment,
    pub stored_at: Moment,
    /// The account that got it; none for one that was brought.
    pub issuer_id: Option<IssuerId>,
    /// What its renewal names it by (RFC 9773 §4.1).
    pub ari_id: Option<String>,
}

impl InUse {
    /// How long it is good.
    pub fn validity(&self) -> Validity {
        Validity { not_before: self.not_before, not_after: self.not_after }
    }
}

/// An intent whose outcome was never recorded: somebody died between doing and writing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenIntent {
    /// What was to be done.
    pub effect: Effect,
    /// To which object.
    pub object_id: String,
}

/// Everything `plan` decides by.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "each field is one of the types above, a count of edges, the lap of imported names, how names are let go of, since when a restored system recovers, or what its import is held by"
)]
pub struct Situation {
    pub domain: Domain,
    pub tenant_slug: String,
    pub tenant_status: TenantStatus,
    pub attempt: Attempt,
    pub holding: Option<Holding>,
    pub issuer: Issuer,
    pub order: Option<Order>,
    pub grant: Option<Grant>,
    pub certificate: Option<InUse>,
    pub renewal: Option<Renewal>,
    pub intent: Option<OpenIntent>,
    pub notice: Option<Notice>,
    pub held: Option<Hold>,
    pub counted_edges: usize,
    pub min_edges: usize,
    pub lap: Duration,
    pub letting_go: LettingGo,
    pub recovering_since: Option<Moment>,
    /// The end of a certificate that edges serve the name with, for this tenant, and that a restored database does not have, or of
    /// which that is not settled yet.
    pub remembered_until: Option<Moment>,
    /// The database was restored, and edges have not told yet what they remember, or what they told of the name is not settled.
    pub unreminded: bool,
    /// Where the row says that the claim stands, and until when its certificate lasts; nothing where it has to be written anew.
    pub stood: Option<(Standing, Option<Moment>)>,
}

/// Who asks for looks without being somebody who waits for them.
const OURSELVES: [&str; 3] = ["nameplate", "routine", "import"];

impl Situation {
    /// The lane in which a look for this claim waits.
    pub fn look_lane(&self) -> look::Lane {
        let d = &self.domain;
        let by_somebody = d.check_asked_by.as_deref().is_some_and(|by| !OURSELVES.contains(&by));
        let grant_in_hand = self.order.as_ref().is_some_and(|o| o.state == OrderState::Granted);
        // What waits is looked at in the lane that it waits in, whoever claimed the name and how.
        let lane = self.order.as_ref().filter(|o| o.purpose != Purpose::First).map_or(d.lane, |o| o.lane);
        match lane {
            _ if d.check_is_owed() && by_somebody => look::Lane::CheckNow,
            Lane::Bulk if !grant_in_hand => look::Lane::Bulk,
            _ => look::Lane::Single,
        }
    }
}

/// What a claim is to the holding of its hostname.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It holds the name.
    Holder,
    /// It is to hold it next; its clock may still run.
    Successor,
    /// Neither.
    Neither,
}

impl Situation {
    /// What this claim is to the holding of its hostname.
    pub fn role(&self) -> Role {
        match &self.holding {
            Some(h) if h.state == HoldingState::Held && h.domain_id.as_ref() == Some(&self.domain.id) => Role::Holder,
            Some(h) if h.successor.as_ref().is_some_and(|s| s.domain_id == self.domain.id) => Role::Successor,
            _ => Role::Neither,
        }
    }

    /// This claim's clock, while it is to hold the name next.
    pub fn succession(&self) -> Option<&Succession> {
        let clock = self.holding.as_ref()?.successor.as_ref()?;
        (self.role() == Role::Successor).then_some(clock)
    }
}
