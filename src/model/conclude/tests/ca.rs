//! Properties of what follows from answers of the CA that were not the wanted ones.

use super::*;
use crate::model::issuer::IssuerNews;

const VERDICTS: [CaVerdict; 7] = [
    CaVerdict::StepAgain,
    CaVerdict::RetryAt(None),
    CaVerdict::RetryAt(Some(Duration::from_secs(100 * 24 * 3600))),
    CaVerdict::WaitFor,
    CaVerdict::GiveUp,
    CaVerdict::Missing,
    CaVerdict::Lost,
];

fn said(verdict: CaVerdict) -> Trouble {
    let said = "the CA will not".to_owned();
    Trouble { verdict, news: None, limited: None, of_replaces: false, said, problem: None, acted_on: false }
}

/// The state in which an order is left.
fn left_in(out: &Outcome, order: &Order) -> OrderState {
    let state = |w: &Write| if let Write::Order { order, .. } = w { Some(order.state) } else { None };
    out.writes.iter().find_map(state).unwrap_or(order.state)
}

proptest! {
    /// Once the CSR is with the CA, or may be, no answer but that the order is invalid ends it before its time.
    #[test]
    fn nothing_ends_an_order_whose_certificate_may_exist(
        s in situation(), o in order(), at in 0..VERDICTS.len(), age in 0..=86_400_u64, way in 0..4_u8, ours: bool,
    ) {
        let since = NOW - Duration::from_secs(age);
        let (state, effect) = if way == 0 { (OrderState::Finalizing, None) } else { (OrderState::Ready, Some(Effect::Finalize)) };
        let state = if way == 3 { OrderState::Finalizing } else { state };
        let o = Order { state, state_since: since, ..o };
        let mut s = s;
        if way == 1 {
            s.intent = Some(OpenIntent { effect: Effect::Finalize, object_id: o.id.to_string() });
        }
        let news = ours.then(|| IssuerNews::InDoubt("gone".to_owned()));
        let t = Trouble { acted_on: way == 2, news, ..said(VERDICTS[at]) };
        let out = trouble(&s, &o, effect, &t, NOW);
        prop_assert_eq!(left_in(&out, &o), OrderState::Finalizing, "{:?}", out);
        prop_assert!(out.domain.due_at > NOW && out.domain.due_at <= NOW + Duration::from_secs(86_400));
        prop_assert_eq!(out.domain.failures, s.domain.failures);
        prop_assert!(out.events.iter().any(|e| e.cause == t.said), "the CA's words are told");
        let stuck = Order { state_since: NOW - plan::STUCK_FINALIZING - Duration::from_secs(1), ..o };
        prop_assert_eq!(left_in(&trouble(&s, &stuck, effect, &t, NOW), &stuck), OrderState::Failed, "it is not waited for without end");
    }

    /// A limit closes its row wherever it is met, and what is said of a pause is the operator's alone.
    #[test]
    fn a_limit_moves_its_row_wherever_it_is_met(s in situation(), o in order(), paused: bool, at in 0..VERDICTS.len(), step in 0..4_usize) {
        let effect = [None, Some(Effect::Announce), Some(Effect::Finalize), Some(Effect::NewOrder)][step];
        let (limit, closed) = if paused { (LimitName::FailuresInARow, Closed::Paused) } else { (LimitName::OrdersPerAccount, Closed::Others) };
        let limited = Some(Limited { limit, closed, link: Some("https://ca.test/jwt".to_owned()) });
        let t = Trouble { limited, problem: Some("jwt".to_owned()), said: "jwt".to_owned(), ..said(VERDICTS[at]) };
        let out = trouble(&s, &o, effect, &t, NOW);
        let rows: Vec<_> = out.writes.iter().filter_map(|w| if let Write::Refused(r) = w { Some(r.limit) } else { None }).collect();
        let asked = effect != Some(Effect::NewOrder) || s.grant.is_some();
        prop_assert_eq!(rows, if asked { vec![limit] } else { vec![] });
        if paused {
            prop_assert!(out.events.iter().all(|e| !e.cause.contains("jwt") && !e.detail.to_string().contains("jwt")), "{:?}", out.events);
            let kept = |w: &Write| if let Write::Order { problem, .. } = w { problem.clone() } else { None };
            prop_assert!(out.writes.iter().filter_map(kept).all(|p| !p.contains("jwt")));
        }
    }
}
