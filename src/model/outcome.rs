//! What a step leaves behind: the new row, what else is written with it, and the events that tell of it.
//!
//! An outcome is recorded in one transaction that a stale generation cannot enter. It carries intentions in the product's
//! words ([`Write`]); the store knows how to say them in SQL.

use std::time::Duration;

use serde_json::{Value, json};

use super::alert::kinds::EVIDENCE_CHANGED;
use super::domain::{Domain, GrantState, Situation};
use super::id::{CertificateId, ChallengeId, DomainId, EdgeId, GrantId, IssuerId, OrderId};
use super::issuer::IssuerNews;
use super::limits::{Closed, Ending, LimitName, ending};
use super::moment::Moment;
use super::notice::NewNotice;
use super::order::{Lane, Order, OrderState, Purpose};
use super::renewal::Schedule;
use super::succession::Succession;

/// An event of a domain's history, before it is numbered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEvent {
    /// What happened: a stable word.
    pub kind: &'static str,
    /// Who made it happen: `nameplate`, `operator`, `tenant`, `ca`, `edge`, or a token's label.
    pub actor: String,
    /// Why, in one plain sentence.
    pub cause: String,
    /// Facts for machines.
    pub detail: Value,
}

/// A certificate to store: key and chain as one unit, already checked to fit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the columns are explained in the schema")]
pub struct NewCertificate {
    pub id: CertificateId,
    pub serial: String,
    pub fingerprint: String,
    pub chain: String,
    pub not_before: Moment,
    pub not_after: Moment,
    pub ari_id: Option<String>,
}

/// Something to write together with the domain's row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// Become the holder of a name that is free, or whose quarantine this claim may end.
    TakeHolding {
        /// The domain whose quarantine ends: its keys are destroyed with it.
        ends_quarantine_of: Option<DomainId>,
    },
    /// Be next after this holder, with this clock; refused when another claim is ahead or the holder is another one.
    Succeed {
        /// The holder, or who held the name last.
        holder: DomainId,
        /// The clock.
        clock: Succession,
    },
    /// This claim is not to be next any more; who else waits for the name looks at once.
    EndSuccession {
        /// The claim.
        of: DomainId,
    },
    /// Become the holder in place of this one, who lets go of the name in the same moment.
    TakeOver {
        /// The holder, or who held the name last.
        from: DomainId,
    },
    /// News for others.
    Leave(Vec<NewNotice>),
    /// A notice was put into the history.
    Heard(String),
    /// The link with the other half ends, and a redirect with it.
    Unlink,
    /// Stop holding; nobody does.
    FreeHolding,
    /// Stop holding; the name's DNS may still point here.
    Quarantine,
    /// The attempt succeeded: its value stays the tie's.
    ProveAttempt,
    /// The value no longer counts.
    CloseAttempt,
    /// A new order row in state `waiting`.
    OpenOrder {
        /// Its id.
        id: OrderId,
        /// Why.
        purpose: Purpose,
        /// Its lane.
        lane: Lane,
        /// For which account.
        issuer_id: IssuerId,
        /// Not eligible before.
        not_before: Moment,
    },
    /// The new values of the open order; `problem`: the CA's own words, kept whole.
    Order {
        /// The row.
        order: Box<Order>,
        /// The state it was decided by; if it changed meanwhile, nothing is recorded.
        was: OrderState,
        /// What went wrong, if something did.
        problem: Option<String>,
    },
    /// The order waits in another lane from now on.
    OrderLane(OrderId, Lane),
    /// The sealed key of the order's certificate.
    OrderKey {
        /// The order.
        id: OrderId,
        /// The key as the vault sealed it for this order.
        sealed: Vec<u8>,
    },
    /// The grant was used and the CA counted the order: the spends that are counted with an order move the ledger.
    GrantCounted(GrantId),
    /// The grant, in this state until now, was surely not used: its spends are deleted. Where it changed meanwhile (a call is
    /// under way), nothing is recorded.
    GrantReturned(GrantId, GrantState),
    /// A grant of the order's own, without the dispatcher: it takes nothing of the budget once the CA says that it took the order as
    /// a replacement. Until then the order counts.
    TakeGrant {
        /// Its id.
        id: GrantId,
        /// Whose.
        order_id: OrderId,
        /// Unused after this, the order waits in line.
        expires_at: Moment,
    },
    /// The grant was used, and the CA took the order as a replacement: it counts neither order nor certificate.
    GrantExempt(GrantId),
    /// The grant was used; it was taken as one that costs nothing, and the CA counts the order after all.
    GrantCharged(GrantId),
    /// Whether the CA takes orders as replacements of what they name.
    HonoursReplaces(IssuerId, bool),
    /// The CA does not take the certificate in use as one to be replaced.
    ReplacesRefused,
    /// The grant was offered to the CA and surely not taken: it can be used again until then.
    GrantAgain(GrantId, Moment),
    /// The order ended: what is counted by its outcome is settled now.
    SpendsClosed(OrderId, Ending),
    /// The CA says that a limit is used up where our own counting had room.
    Refused(Box<Refusal>),
    /// What a call told of its CA.
    Issuer(IssuerId, IssuerNews),
    /// A token for the edges to answer.
    PublishChallenge {
        /// Its id.
        id: ChallengeId,
        /// Whose order.
        order_id: OrderId,
        /// The token.
        token: String,
        /// The answer.
        key_authorization: String,
    },
    /// The token need not be answered any more.
    RemoveChallenge(ChallengeId),
    /// The chain, with the key of its order.
    StoreCertificate {
        /// The order it came from.
        order_id: OrderId,
        /// Chain and facts.
        certificate: Box<NewCertificate>,
    },
    /// When the certificate, which is in use from now on, is to be renewed.
    Renewal {
        /// The certificate.
        of: CertificateId,
        /// When, and when the CA is asked about it.
        schedule: Box<Schedule>,
        /// What edges served before it.
        former: Option<CertificateId>,
        /// They are told to serve it then, where they serve something else still.
        switch_at: Option<Moment>,
    },
    /// Edges were told to serve the certificate in use.
    Switched,
    /// The keys of all other certificates of the domain are destroyed, here and on the edges.
    Retire {
        /// The one in use.
        all_but: CertificateId,
    },
    /// Edges serve the name with this certificate.
    RouteServe(CertificateId),
    /// Edges stop serving the name.
    RouteGone,
    /// Keys of the domain's certificates and orders are destroyed.
    DestroyKeys,
    /// The certificates of this domain that are still good are revoked at their CA, when that can be.
    Revoke {
        /// Whose.
        of: DomainId,
    },
    /// These edges missed a token for too long.
    EdgesLost(Vec<EdgeId>),
}

/// A limit that the CA holds against us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// At which issuer.
    pub issuer_id: IssuerId,
    /// The limit.
    pub limit: LimitName,
    /// Its key.
    pub key: String,
    /// What it means.
    pub closed: Closed,
    /// The wait the CA told; without it the wait grows with every refusal in a row.
    pub told: Option<Duration>,
    /// The first wait, and the longest, where nothing was told.
    pub untold: (Duration, Duration),
    /// From the end of the wait to the theoretical arrival time, so that one at a time goes on from there.
    pub tolerance: Duration,
    /// The CA's words.
    pub said: String,
    /// Where the CA says more, or lets the operator lift it.
    pub link: Option<String>,
}

/// What a step leaves behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The new values of the row.
    pub domain: Domain,
    /// What else is written.
    pub writes: Vec<Write>,
    /// What is told of it.
    pub events: Vec<NewEvent>,
    /// What is recorded instead when somebody else holds the name by the time this is written.
    pub otherwise: Option<Box<Outcome>>,
}

impl Outcome {
    /// Starts from the situation, due at `due_at`.
    pub fn of(s: &Situation, due_at: Moment) -> Self {
        let mut domain = s.domain.clone();
        domain.due_at = due_at;
        Outcome { domain, writes: Vec::new(), events: Vec::new(), otherwise: None }
    }

    /// Where the domain's order stands once this is recorded; none where there is none.
    pub fn order_state(&self, s: &Situation) -> Option<OrderState> {
        let written = self.writes.iter().rev().find_map(|write| match write {
            Write::Order { order, .. } => Some(order.state),
            Write::OpenOrder { .. } => Some(OrderState::Waiting),
            _ => None,
        });
        written.or(s.order.as_ref().map(|order| order.state))
    }

    /// Adds a write.
    #[must_use]
    pub fn write(mut self, write: Write) -> Self {
        self.writes.push(write);
        self
    }

    /// Adds an event.
    #[must_use]
    pub fn tell(mut self, kind: &'static str, actor: &str, cause: impl Into<String>, detail: Value) -> Self {
        self.events.push(NewEvent { kind, actor: actor.to_owned(), cause: cause.into(), detail });
        self
    }

    /// Whether a look saw something else than the one before.
    pub fn saw_something_new(&self) -> bool {
        self.events.iter().any(|event| event.kind == EVIDENCE_CHANGED)
    }

    /// Adds an event of our own doing, without facts.
    #[must_use]
    pub fn note(self, kind: &'static str, cause: impl Into<String>) -> Self {
        self.tell(kind, "nameplate", cause, json!({}))
    }

    /// Writes the order with a new state.
    #[must_use]
    pub fn order(mut self, order: &Order, state: OrderState, now: Moment, change: impl FnOnce(&mut Order)) -> Self {
        let was = order.state;
        let mut order = order.clone();
        if order.state != state {
            order.state = state;
            order.state_since = now;
        }
        change(&mut order);
        let ends = (!order.state.is_open()).then(|| Write::SpendsClosed(order.id.clone(), ending(was, order.state)));
        self.writes.extend(ends);
        self.write(Write::Order { order: Box::new(order), was, problem: None })
    }
}
