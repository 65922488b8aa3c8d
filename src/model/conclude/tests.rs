//! Properties over whole situations: whatever is known, `plan` and the conclusions keep to what always holds.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::model::claim::{Claim, ClaimStep};
use crate::model::domain::{
    Attempt, Domain, Effect, Grant, GrantState, Holding, HoldingState, InUse, Issuer, OpenIntent, Role, RoutingMode,
    Situation, TieState,
};
use crate::model::evidence::{Check, Evidence, Finding};
use crate::model::hostname::Hostname;
use crate::model::id::{AttemptId, CertificateId, DomainId, GrantId, IssuerId, OrderId, TenantId};
use crate::model::limits::{Closed, LimitName};
use crate::model::moment::Moment;
use crate::model::notice::{Notice, NoticeKind};
use crate::model::order::{Lane, Order, OrderState, Purpose};
use crate::model::outcome::{NewCertificate, Write};
use crate::model::plan::{self, Change, Next, plan};
use crate::model::reason::Reason;
use crate::model::renewal::{Claims, Renewal, Schedule, Window};
use crate::model::succession::{NOTICE, Succession};
use crate::model::tenant::TenantStatus;

mod ca;
mod renewals;

const NOW: Moment = Moment::from_secs(1_800_000_000);

fn findings(reasons: [Reason; 3]) -> Vec<Finding> {
    [Check::Ownership, Check::Routing, Check::Caa].into_iter().zip(reasons).map(|(c, r)| Finding::bare(c, r)).collect()
}

const PREFLIGHTS: [Reason; 6] = [
    Reason::PreflightOk,
    Reason::PreflightOk,
    Reason::PreflightOff,
    Reason::PreflightUnreachable,
    Reason::PreflightNoAddress,
    Reason::PreflightOwnOutage,
];

const PASS: [Reason; 3] = [Reason::TxtOk, Reason::CnameOk, Reason::CaaAbsent];

prop_compose! {
    fn reasons()(kind in 0..4_u8, any in 0..Reason::ALL.len()) -> [Reason; 3] {
        let reason = Reason::ALL[any];
        match kind {
            0 => PASS,
            1 => [reason, PASS[1], PASS[2]],
            2 => [PASS[0], reason, PASS[2]],
            _ => [PASS[0], PASS[1], reason],
        }
    }
}

prop_compose! {
    fn order()(state in 0..6_usize, age in 0..200_000_u64, keyed: bool, announced: bool, eligible: bool) -> Order {
        let since = NOW - Duration::from_secs(age);
        let state = OrderState::ALL[state];
        Order {
            id: OrderId::mint(since, [1; 10]),
            purpose: Purpose::First,
            lane: Lane::Single,
            issuer_id: IssuerId::mint(since, [2; 10]),
            state,
            state_since: since,
            not_before: if eligible { since } else { Moment::NEVER },
            sealed_key: keyed.then(|| vec![1]),
            url: (state > OrderState::Granted).then(|| "https://ca.test/order/1".to_owned()),
            challenge_url: Some("https://ca.test/chall/1".to_owned()),
            challenge_id: None,
            announced_at: announced.then_some(since),
            certificate_id: None,
        }
    }
}

prop_compose! {
    fn situation()(
        claim in 0..7_usize, reasons in reasons(), looked in proptest::option::of(0..600_u64), asked in proptest::option::of(0..600_u64),
        order in proptest::option::of(order()), grant in proptest::option::of((0..3_usize, -100..600_i64)),
        holder in 0..12_u8, counted in 0..300_000_u64, runs: bool, opened in 0..3_000_000_u64, certificate: bool, active: bool, intent in 0..4_u8, failures in 0..6_i64,
        flown in proptest::option::of((0..600_u64, 0..PREFLIGHTS.len())), tie in 0..3_usize,
        renewal in proptest::option::of((-100_000..100_000_i64, any::<bool>(), any::<bool>(), any::<bool>())),
    ) -> Situation {
        let id = DomainId::mint(NOW, [3; 10]);
        let tenant = TenantId::mint(NOW, [4; 10]);
        let at = |age: u64| NOW - Duration::from_secs(age);
        let looked_at = looked.map(at);
        let mut evidence: Vec<Evidence> = match looked_at {
            Some(looked_at) => findings(reasons).into_iter().map(|finding| Evidence { finding, looked_at }).collect(),
            None => Vec::new(),
        };
        evidence.extend(flown.map(|(age, at)| Evidence { finding: Finding::bare(Check::Preflight, PREFLIGHTS[at]), looked_at: NOW - Duration::from_secs(age) }));
        let other = DomainId::mint(NOW, [9; 10]);
        let third = DomainId::mint(NOW, [10; 10]);
        let clock = |of: &DomainId| Some(Succession {
            domain_id: of.clone(), since: at(400_000), counted: Duration::from_secs(counted).min(NOTICE),
            seen_at: runs.then(|| at(3600)),
        });
        let holding = |domain_id: &DomainId, state| Holding {
            domain_id: Some(domain_id.clone()), tenant_id: Some(TenantId::mint(NOW, [8; 10])), state, term: 1, since: at(100_000),
            value: None, successor: None,
        };
        Situation {
            tenant_status: TenantStatus::Active,
            domain: Domain {
                id: id.clone(), tenant_id: tenant, hostname: Hostname::trusted("support.acme.test"), lane: Lane::Single, claim: Claim::ALL[claim],
                claim_since: at(opened), routing_mode: RoutingMode::PerTenant, target: "acme.app.example".to_owned(),
                attempt_id: AttemptId::mint(NOW, [5; 10]), evidence, looked_at, pace_from: at(opened),
                check_asked_at: asked.map(at), check_asked_by: asked.map(|_| "tenant".to_owned()), public_probe: None,
                tie: TieState::ALL[tie], lost_for_us: 0, counted_until: None, due_at: NOW, generation: 7, settled: 6, failures, event_seq: 3, edits: 0,
                certificate_id: certificate.then(|| CertificateId::mint(NOW, [6; 10])), active_since: active.then_some(NOW),
                released_at: None, created_at: at(opened),
            },
            tenant_slug: "acme".to_owned(),
            attempt: Attempt {
                value: "nameplate-verify=0".to_owned(), opened_at: at(opened),
                deadline: at(opened) + Duration::from_secs(30 * 24 * 3600), proven_at: None,
            },
            holding: match holder {
                0 => None,
                1 => Some(holding(&other, HoldingState::Held)),
                2 => Some(holding(&other, HoldingState::Quarantined)),
                3 => Some(holding(&other, HoldingState::Free)),
                4 => Some(Holding { successor: clock(&id), ..holding(&other, HoldingState::Held) }),
                5 => Some(Holding { successor: clock(&id), ..holding(&other, HoldingState::Quarantined) }),
                6 => Some(Holding { successor: clock(&third), ..holding(&other, HoldingState::Held) }),
                7 => Some(Holding { successor: clock(&other), ..holding(&id, HoldingState::Held) }),
                _ => Some(holding(&id, HoldingState::Held)),
            },
            issuer: Issuer {
                id: IssuerId::mint(NOW, [2; 10]), name: "main".to_owned(), directory: "https://ca.test".to_owned(),
                caa_identities: vec!["ca.test".to_owned()], account_url: Some("https://ca.test/acct/1".to_owned()),
                sealed_account_key: None, limits: std::collections::BTreeMap::new(), roots: None, profile: None, clouded: false,
                honours_replaces: active,
            },
            grant: grant.map(|(state, left)| Grant {
                id: GrantId::mint(NOW, [7; 10]), state: GrantState::ALL[state],
                expires_at: Moment::from_micros(NOW.micros() + left * 1_000_000), free: runs,
            }),
            certificate: certificate.then(|| InUse {
                id: CertificateId::mint(NOW, [6; 10]), serial: "01".to_owned(), not_before: NOW,
                not_after: NOW + Duration::from_secs(90 * 24 * 3600), stored_at: NOW,
                issuer_id: Some(IssuerId::mint(NOW, [2; 10])), ari_id: Some("aa.bb".to_owned()),
            }),
            renewal: renewal.filter(|_| certificate).map(|(due_in, begun, refused, waits)| Renewal {
                schedule: Schedule {
                    at: Moment::from_micros(NOW.micros() + due_in * 1_000_000),
                    window: begun.then(|| Window { start: at(60), end: NOW + Duration::from_secs(60) }),
                    explanation: None, poll_at: NOW, failures: 0, said: None,
                },
                refused, former: waits.then(|| CertificateId::mint(NOW, [11; 10])),
                switch_at: (waits && runs).then_some(NOW), reissue: None, hurries: false,
            }),
            notice: None,
            intent: match intent {
                0 => Some(OpenIntent { effect: Effect::NewOrder, object_id: String::new() }),
                1 => Some(OpenIntent { effect: Effect::Finalize, object_id: String::new() }),
                _ => None,
            },
            held: None, counted_edges: usize::from(failures < 5),
            min_edges: 1,
            lap: crate::model::pace::SHORTEST_LAP,
            letting_go: crate::model::letting_go::LettingGo::default(),
            recovering_since: None,
            remembered_until: None,
            stood: None,
            unreminded: false,
            order,
        }
    }
}

proptest! {
    /// Invariant 1: no order without every check passing, freshly, under a usable grant, with the key durable.
    #[test]
    fn an_order_is_placed_only_on_fresh_proof(s in situation()) {
        if plan(&s, NOW) == Next::Act(Effect::NewOrder) {
            match s.domain.claim {
                Claim::Queued => prop_assert!(s.domain.all_pass()),
                // Invariant 1 again: no renewal without an unbroken tie.
                claim => prop_assert!(claim == Claim::Live && s.domain.tie != TieState::Lost && s.domain.may_be_issued()),
            }
            prop_assert!(s.domain.looked_at.is_some_and(|at| NOW.since(at) < plan::FRESH));
            prop_assert!(s.domain.preflight_passed().is_some_and(|e| NOW.since(e.looked_at) < plan::FRESH));
            prop_assert!(s.counted_edges >= s.min_edges, "nobody could answer the CA");
            prop_assert!(!s.domain.check_is_owed());
            let grant = s.grant.as_ref().unwrap();
            prop_assert!(grant.state == GrantState::Open && grant.expires_at > NOW);
            prop_assert!(s.order.as_ref().unwrap().sealed_key.is_some());
            prop_assert!(s.intent.as_ref().is_none_or(|i| i.effect != Effect::NewOrder), "never twice for one intent");
        }
    }

    /// A closed claim rests; nothing that rests is due in the past; only what is open works on orders.
    #[test]
    fn rest_is_in_the_future_and_closed_claims_rest_for_ever(s in situation()) {
        let next = plan(&s, NOW);
        if let Next::Rest(until) = next {
            prop_assert!(until > NOW, "rests until {}", until);
        }
        let lost = s.intent.as_ref().is_some_and(|i| i.effect == Effect::NewOrder);
        if matches!(s.domain.claim, Claim::Released | Claim::Withdrawn | Claim::Expired) && !lost {
            prop_assert_eq!(next, Next::Rest(Moment::NEVER));
        }
        if matches!(next, Next::Act(_)) {
            prop_assert!(matches!(s.domain.claim, Claim::Queued | Claim::Live));
        }
    }

    /// A look proves a claim only when everything passes and nobody else holds the name, or its holder's record has been gone
    /// for long enough; silence takes nothing away.
    #[test]
    fn a_look_moves_a_claim_only_on_what_was_seen(s in situation(), reasons in reasons(), seen in 0..3_usize, cname: bool) {
        let mut s = s;
        let before = s.clone();
        let value = [Presence::Present, Presence::Absent, Presence::Unknown][seen];
        let former = Former { value, cname_at_own_host: cname };
        let looked = Looked { findings: findings(reasons), former };
        let mut drawn = 0_u8;
        let out = look(&mut s, &looked, NOW, &mut || { drawn += 1; [drawn; 10] });
        let all_pass = looked.findings.iter().all(|f| f.verdict() == crate::model::evidence::Verdict::Pass);
        let proven = looked.findings[0].verdict() == crate::model::evidence::Verdict::Pass;
        let held = before.holding.as_ref().is_some_and(|h| h.state == HoldingState::Held
            && h.domain_id.as_ref() != Some(&before.domain.id));
        let quarantined = before.holding.as_ref().is_some_and(|h| h.state == HoldingState::Quarantined);
        let over = before.succession().is_some_and(|clock| clock.seen(NOW).is_over());
        let has = |f: &dyn Fn(&Write) -> bool| out.writes.iter().any(f);
        match (before.domain.claim, out.domain.claim) {
            (Claim::AwaitingDns, Claim::Queued) => {
                prop_assert!(all_pass);
                let takes = out.writes.iter().filter(|w| matches!(w, Write::TakeHolding { .. })).count();
                prop_assert_eq!(takes, usize::from(!held), "a name that is held is not taken by a look");
                prop_assert_eq!(has(&|w| matches!(w, Write::Succeed { .. })), held);
                prop_assert!(out.otherwise.is_some(), "the database may still say no");
                if held {
                    prop_assert!(over && value == Presence::Absent, "the notice is not over");
                }
                if quarantined {
                    prop_assert!(value == Presence::Absent && (cname || over), "the former's record may still be there");
                }
            }
            (Claim::Queued, Claim::AwaitingDns) => {
                let gone = looked.findings[0].reason.tie() == crate::model::evidence::Tie::Gone;
                let back = before.role() == Role::Successor && value == Presence::Present;
                prop_assert!(gone || back);
                prop_assert_eq!(has(&|w| matches!(w, Write::FreeHolding)), before.role() != Role::Successor);
            }
            (from, to) => prop_assert_eq!(from, to),
        }
        // Nothing is said of others, by any way, before the claim's own record was seen.
        if before.domain.claim == Claim::AwaitingDns && !proven && before.succession().is_none() {
            prop_assert!(out.domain.evidence_of(Check::Holding).is_none());
            prop_assert!(out.writes.is_empty(), "{:?}", out.writes);
            prop_assert!(out.events.iter().all(|e| matches!(e.kind, "check_asked" | "evidence_changed")), "{:?}", out.events);
            let mut free = Situation { holding: None, ..before.clone() };
            let like_free = look(&mut free, &looked, NOW, &mut || [0; 10]);
            prop_assert_eq!(&like_free.events, &out.events);
            prop_assert_eq!(like_free.domain.due_at, out.domain.due_at);
        }
        // Silence about the other's record never runs a clock.
        for write in &out.writes {
            if let Write::Succeed { clock, .. } = write {
                let counted = before.succession().map_or(Duration::ZERO, |c| c.counted);
                prop_assert!(value == Presence::Absent || clock.counted == counted && clock.seen_at.is_none());
            }
        }
        let outs = [Some(&out), out.otherwise.as_deref()];
        for out in outs.into_iter().flatten() {
            prop_assert!(out.writes.iter().filter(|w| matches!(w, Write::Leave(_))).count() <= 1);
            let one = |w: &&Write| matches!(w, Write::TakeHolding { .. } | Write::Succeed { .. } | Write::EndSuccession { .. } | Write::FreeHolding);
            prop_assert!(out.writes.iter().filter(one).count() <= 1, "{:?}", out.writes);
        }
    }

    /// A claim that may not order just now is not looked at over and over: its next look is in the future.
    #[test]
    fn a_queued_claim_that_waits_rests(s in situation(), reasons in reasons(), seen in 0..3_usize) {
        let mut s = s;
        s.domain.claim = Claim::Queued;
        let former = Former {
            value: [Presence::Present, Presence::Absent, Presence::Unknown][seen], cname_at_own_host: false,
        };
        let looked = Looked { findings: findings(reasons), former };
        let mut drawn = 0_u8;
        let waits = s.order.as_ref().is_some_and(|o| matches!(o.state, OrderState::Waiting | OrderState::Finalizing));
        let out = look(&mut s, &looked, NOW, &mut || { drawn += 1; [drawn; 10] });
        if waits && !plan::may_order(&s) && s.role() != Role::Neither {
            prop_assert!(out.domain.due_at > NOW, "{:?}", out);
        }
    }

    /// A chain goes live by the holding its claim has; a successor's takes the name in the same outcome, and says what else.
    #[test]
    fn a_chain_takes_a_name_only_from_whom_the_claim_follows(s in situation(), o in order()) {
        let s = Situation { domain: Domain { claim: Claim::Queued, ..s.domain.clone() }, ..s };
        let certificate = NewCertificate {
            id: CertificateId::mint(NOW, [11; 10]), serial: "02".to_owned(), fingerprint: String::new(), chain: String::new(),
            not_before: NOW, not_after: NOW + Duration::from_secs(1), ari_id: None,
        };
        let out = chain(&s, &o, certificate, 7, NOW);
        let takes: Vec<_> = out.writes.iter().filter_map(|w| match w { Write::TakeOver { from } => Some(from.clone()), _ => None }).collect();
        match s.role() {
            Role::Successor => {
                prop_assert_eq!(takes, vec![s.holding.as_ref().unwrap().domain_id.clone().unwrap()]);
                let otherwise = out.otherwise.as_ref().unwrap();
                prop_assert!(otherwise.domain.claim != Claim::Live);
            }
            _ => prop_assert!(takes.is_empty()),
        }
    }

    /// News goes into the history once, and changes nothing else of where the claim stands.
    #[test]
    fn a_notice_is_heard_before_anything_else_is_done(s in situation(), kind in 0..8_usize) {
        let mut s = s;
        let kind = NoticeKind::ALL[kind];
        s.notice = Some(Notice {
            id: "1".to_owned(), kind, actor: "nameplate".to_owned(), hostname: Hostname::trusted("x.acme.test"),
        });
        let lost = s.intent.as_ref().is_some_and(|i| i.effect == Effect::NewOrder);
        if matches!(s.domain.claim, Claim::AwaitingDns | Claim::Queued | Claim::Live) && !lost {
            prop_assert_eq!(plan(&s, NOW), Next::Change(Change::Hear));
            let out = change(&s, Change::Hear, None, NOW, &mut || [0; 10]);
            prop_assert_eq!(out.domain.claim, s.domain.claim);
            prop_assert_eq!(&out.writes, &vec![Write::Heard("1".to_owned())]);
            prop_assert_eq!(out.events.len(), 1);
            prop_assert!(out.events[0].cause.contains("x.acme.test") && !out.events[0].cause.contains("acme.app"));
        }
    }

    /// A preflight that does not pass leaves no grant and no eligible order, and one that passes never takes the grant; whatever
    /// it saw, the claim, the holding and the tie stay as they are.
    #[test]
    fn a_preflight_gives_back_what_it_does_not_allow(s in situation(), at in 0..PREFLIGHTS.len()) {
        let (mut s, reason) = (s, PREFLIGHTS[at]);
        if let Some(order) = s.order.clone() {
            let before = s.domain.clone();
            let out = preflight(&mut s, &order, &Finding::bare(Check::Preflight, reason), NOW);
            let written = out.writes.iter().find_map(|w| match w { Write::Order { order, .. } => Some(order), _ => None });
            let returned = out.writes.iter().any(|w| matches!(w, Write::GrantReturned(..)));
            let open = s.grant.as_ref().is_some_and(|g| g.state == GrantState::Open);
            let passes = reason.verdict() == crate::model::evidence::Verdict::Pass;
            let waits = matches!(order.state, OrderState::Waiting | OrderState::Granted);
            if waits && !passes {
                let now = written.map_or(order.not_before, |o| o.not_before);
                prop_assert_eq!(now, Moment::NEVER, "it is not eligible");
                prop_assert_eq!(returned, order.state == OrderState::Granted && open);
                let spins = out.domain.due_at <= NOW && plan::next_look(&s) > NOW;
                prop_assert!(!spins, "and rests before it is asked again");
            }
            prop_assert!(!(passes && returned));
            if let Some(order) = written.filter(|o| o.not_before != Moment::NEVER) {
                prop_assert!(passes && s.is_tied() && s.domain.may_be_issued() || order.state != OrderState::Waiting);
            }
            prop_assert_eq!((out.domain.claim, out.domain.tie, out.domain.looked_at), (before.claim, before.tie, before.looked_at));
            prop_assert_eq!(out.domain.evidence_of(Check::Preflight).map(|e| e.finding.reason), Some(reason));
        }
    }

    /// Removal is refused or complete: a route or a holding never stays behind, and no order stays open.
    #[test]
    fn removal_is_complete_or_refused(s in situation()) {
        match remove(&s, "tenant", NOW) {
            Err(e) => prop_assert!(s.domain.claim.after(ClaimStep::Remove).is_err(), "{e}"),
            Ok(out) => {
                prop_assert!(matches!(out.domain.claim, Claim::Withdrawn | Claim::Releasing));
                let has = |f: &dyn Fn(&Write) -> bool| out.writes.iter().any(f);
                prop_assert_eq!(has(&|w| matches!(w, Write::RouteGone)), s.domain.claim == Claim::Live);
                prop_assert_eq!(has(&|w| matches!(w, Write::Quarantine)), out.domain.claim == Claim::Releasing);
                if s.order.is_some() {
                    let failed = has(&|w| matches!(w, Write::Order { order, .. } if order.state == OrderState::Failed));
                    prop_assert!(failed, "an order stays open");
                }
            }
        }
    }

    /// Whatever a tenant that has left was about to do, the next step lets go of the name, and nothing else comes after it.
    #[test]
    fn what_a_tenant_that_left_still_claims_is_let_go_of(s in situation()) {
        let mut s = s;
        s.tenant_status = TenantStatus::Deleted;
        let lost = s.intent.as_ref().is_some_and(|i| i.effect == Effect::NewOrder);
        let next = plan(&s, NOW);
        prop_assert!(!matches!(next, Next::Act(_) | Next::Observe(_)), "{:?}", next);
        if s.domain.claim.is_open() && !lost {
            prop_assert_eq!(next, Next::Change(Change::Offboard));
            let out = change(&s, Change::Offboard, None, NOW, &mut || [0; 10]);
            prop_assert!(matches!(out.domain.claim, Claim::Withdrawn | Claim::Releasing));
        }
    }

    /// One outcome never writes one row twice: PostgreSQL runs it as one statement.
    #[test]
    fn an_outcome_touches_each_row_once(s in situation(), change_no in 0..14_usize) {
        const ALL: [Change; 14] = [Change::TakeTurn, Change::Expire, Change::FinishRelease, Change::OpenOrder, Change::PrepareKey,
            Change::Requeue, Change::LoseOrder, Change::GiveUpOrder, Change::Offboard, Change::Hear, Change::StepBack,
            Change::Hurry, Change::EndReissue, Change::ForgetFailures];
        let mut drawn = 0_u8;
        let mut outs = vec![change(&s, ALL[change_no], Some(vec![1]), NOW, &mut || { drawn += 1; [drawn; 10] })];
        outs.extend(remove(&s, "tenant", NOW).ok());
        if let Some(order) = &s.order {
            for verdict in [CaVerdict::StepAgain, CaVerdict::RetryAt(None), CaVerdict::WaitFor, CaVerdict::GiveUp, CaVerdict::Missing, CaVerdict::Lost] {
                let limited = Limited { limit: LimitName::OrdersPerAccount, closed: Closed::Others, link: None };
                let t = Trouble { verdict, news: None, limited: Some(limited.clone()), of_replaces: false, said: String::new(), problem: None, acted_on: false };
                outs.push(trouble(&s, order, Some(Effect::NewOrder), &t, NOW));
                outs.push(trouble(&s, order, None, &t, NOW));
            }
        }
        for out in outs {
            let orders = out.writes.iter().filter(|w| matches!(w, Write::Order { .. } | Write::OrderKey { .. } | Write::DestroyKeys));
            prop_assert!(orders.count() <= 1, "{:?}", out.writes);
            let grants = out.writes.iter().filter(|w| {
                matches!(w, Write::GrantCounted(_) | Write::GrantReturned(..) | Write::GrantAgain(..))
            });
            prop_assert!(grants.count() <= 1, "{:?}", out.writes);
            let opens = out.writes.iter().any(|w| matches!(w, Write::OpenOrder { .. }));
            let changes = out.writes.iter().any(|w| matches!(w, Write::Order { .. }));
            prop_assert!(!(opens && changes), "an old order and its successor in one statement: {:?}", out.writes);
        }
    }
}
