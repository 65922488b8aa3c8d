//! Properties of renewals: by what right they are opened, what they leave alone, what they cost.

use super::*;

proptest! {
    /// A renewal is opened only for a live name whose moment has come and whose tie is not lost, and beside no other order.
    #[test]
    fn a_renewal_is_opened_only_by_right(s in situation()) {
        if s.domain.claim == Claim::Live && plan(&s, NOW) == Next::Change(Change::OpenOrder) {
            prop_assert!(matches!(s.renewal_claims(NOW), Claims::Now(_)) && s.domain.tie != TieState::Lost);
            prop_assert!(s.order.is_none() && s.renewal.as_ref().unwrap().schedule.at <= NOW);
            let out = change(&s, Change::OpenOrder, None, NOW, &mut || [0; 10]);
            let lane = out.writes.iter().find_map(|w| match w { Write::OpenOrder { lane, not_before, purpose, .. } => Some((*lane, *not_before, *purpose)), _ => None });
            prop_assert_eq!(lane, Some((Lane::Renewal, Moment::NEVER, Purpose::Renew)), "nothing is ordered on what was seen long ago");
        }
    }

    /// A chain that follows a working certificate leaves that where it is, and whatever fails before leaves it, too.
    #[test]
    fn a_renewal_takes_nothing_off_an_edge(s in situation(), o in order()) {
        let s = Situation { domain: Domain { claim: Claim::Live, ..s.domain.clone() }, ..s };
        let o = Order { purpose: Purpose::Renew, ..o };
        let gone = |w: &Write| matches!(w, Write::RouteGone | Write::DestroyKeys | Write::Retire { .. } | Write::RouteServe(_));
        let certificate = NewCertificate {
            id: CertificateId::mint(NOW, [12; 10]), serial: "02".to_owned(), fingerprint: String::new(), chain: String::new(),
            not_before: NOW, not_after: NOW + Duration::from_secs(90 * 24 * 3600), ari_id: None,
        };
        let out = chain(&s, &o, certificate, 7, NOW);
        prop_assert_eq!(out.domain.active_since, s.domain.active_since.filter(|_| s.certificate.is_some()));
        if s.certificate.is_some() {
            prop_assert!(!out.writes.iter().any(gone), "{:?}", out.writes);
            let handed = out.writes.iter().find_map(|w| match w { Write::Renewal { former, switch_at, .. } => Some((former.is_some(), *switch_at)), _ => None });
            prop_assert!(handed.is_some_and(|(former, at)| former && at.is_some_and(|at| at > NOW)), "{:?}", handed);
        }
        for verdict in [CaVerdict::StepAgain, CaVerdict::RetryAt(None), CaVerdict::WaitFor, CaVerdict::GiveUp, CaVerdict::Missing, CaVerdict::Lost] {
            for of_replaces in [false, true] {
                let t = Trouble { verdict, news: None, limited: None, of_replaces, said: String::new(), problem: None, acted_on: false };
                for effect in [None, Some(Effect::NewOrder), Some(Effect::Finalize)] {
                    let out = trouble(&s, &o, effect, &t, NOW);
                    prop_assert!(!out.writes.iter().any(gone));
                    prop_assert_eq!(&out.domain.certificate_id, &s.domain.certificate_id);
                }
            }
        }
    }

    /// While edges are on their way from one certificate to the next no other is begun, and whoever waits for an edge that is
    /// behind neither spins nor misses the looks at what is wrong.
    #[test]
    fn a_switch_is_finished_before_anything_else_and_without_haste(s in situation(), late in 0..90_000_u64, behind: bool) {
        let mut s = Situation { domain: Domain { claim: Claim::Live, ..s.domain.clone() }, order: None, intent: None, notice: None, ..s };
        let Some(in_use) = s.certificate.clone() else { return Ok(()) };
        let Some(renewal) = &mut s.renewal else { return Ok(()) };
        renewal.switch_at = Some(NOW - Duration::from_secs(late));
        renewal.reissue = Some("reissue".to_owned());
        prop_assert!(matches!(s.renewal_claims(NOW), Claims::Later(_)));
        let next = plan(&s, NOW);
        let looks = Next::Observe(plan::Observe::Dns);
        let owed = s.domain.check_is_owed() || NOW >= plan::next_look_at_trouble(&s);
        prop_assert_eq!(next == looks, owed, "{:?}", next);
        if next == Next::Observe(plan::Observe::CertificateRollout) {
            let edges = if behind { vec![(crate::model::id::EdgeId::mint(NOW, [1; 10]), "edge-1".to_owned())] } else { vec![] };
            let rollout = Rollout { counted: 1, behind: edges, exceptions: vec![], numbered: true };
            let Conclusion::Record(out) = certificate_rollout(&s, &rollout, 1, NOW) else { return Err(TestCaseError::fail("recorded")) };
            let told = out.writes.contains(&Write::RouteServe(in_use.id.clone()));
            prop_assert_eq!(told, !behind || late > 600);
            let held_up = in_use.stored_at + Duration::from_secs(2) < NOW && plan::next_look_at_trouble(&s) > NOW + Duration::from_secs(1);
            prop_assert!(told || !held_up || out.domain.due_at >= NOW + Duration::from_millis(500), "due again in {:?}", out.domain.due_at.since(NOW));
        }
    }

    /// What is asked for waits behind what is due, until it is due itself; where nobody asks for it any more it ends, unless the CA may
    /// know of it, and takes nothing with it.
    #[test]
    fn a_replacement_waits_behind_what_is_due_and_ends_when_nobody_asks_for_it(s in situation(), o in order(), asked: bool, late in -90_000_i64..90_000) {
        let mut s = Situation { domain: Domain { claim: Claim::Live, ..s.domain.clone() }, intent: None, notice: None, ..s };
        s.tenant_status = TenantStatus::Active;
        let Some(renewal) = &mut s.renewal else { return Ok(()) };
        renewal.switch_at = None;
        renewal.reissue = asked.then(|| "reissue".to_owned());
        renewal.schedule.at = Moment::from_micros(NOW.micros() - late * 1_000_000);
        let due = late >= 0;
        let opened = Situation { order: None, ..s.clone() };
        prop_assert_eq!(opened.lane_of(Purpose::Reissue, NOW), if due { Lane::Renewal } else { Lane::Bulk });
        prop_assert_eq!(opened.lane_of(Purpose::Renew, NOW), Lane::Renewal);
        let o = Order { purpose: Purpose::Reissue, lane: Lane::Bulk, ..o };
        s.order = Some(o.clone());
        let called = s.grant.as_ref().is_some_and(|g| g.state == GrantState::Used);
        let reached = !(o.state == OrderState::Waiting || o.state == OrderState::Granted && !called);
        let next = plan(&s, NOW);
        prop_assert_eq!(next == Next::Change(Change::EndReissue), !asked && !reached, "{:?}", next);
        let hurries = (asked || reached) && due && o.state == OrderState::Waiting;
        prop_assert_eq!(next == Next::Change(Change::Hurry), hurries, "{:?}", next);
        if next == Next::Change(Change::EndReissue) {
            let out = change(&s, Change::EndReissue, None, NOW, &mut || [0; 10]);
            prop_assert_eq!((out.domain.failures, &out.domain.certificate_id), (0, &s.domain.certificate_id));
            let given = s.grant.as_ref().filter(|g| g.state == GrantState::Open).map(|g| Write::GrantReturned(g.id.clone(), GrantState::Open));
            prop_assert_eq!(out.writes.iter().find(|w| matches!(w, Write::GrantReturned(..))), given.as_ref());
        }
    }

    /// An order that costs nothing needs a window that has begun and a CA that keeps to it; what it takes it gives back.
    #[test]
    fn what_costs_nothing_was_asked_for(s in situation(), o in order(), echoed: bool) {
        let o = Order { purpose: Purpose::Renew, ..o };
        if s.takes_no_budget(&o, NOW) {
            prop_assert!(s.issuer.honours_replaces && s.domain.failures == 0);
            prop_assert!(s.renewal.as_ref().is_some_and(|r| !r.refused && r.schedule.window.is_some_and(|w| w.start <= NOW)));
        }
        let named = s.replaces(&o).is_some();
        let out = placed(&s, &o, "https://ca.test/order/2", echoed && named, NOW);
        if let Some(grant) = &s.grant {
            let exempt = out.writes.contains(&Write::GrantExempt(grant.id.clone()));
            prop_assert_eq!(exempt, echoed && s.is_asked_for(&o, NOW));
            let charged = out.writes.iter().filter(|w| matches!(w, Write::GrantCharged(_) | Write::GrantCounted(_))).count();
            prop_assert_eq!(charged, usize::from(!exempt), "it is counted once, or not at all");
        }
    }
}
