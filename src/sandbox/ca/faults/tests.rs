//! The list alone: whose turn it is, and how it is written.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::model::moment::Moment;
use crate::sandbox::ca::{Endpoint, Kind};

const NOW: Moment = Moment::from_secs(1_800_000_000);

fn script(faults: impl IntoIterator<Item = Fault>) -> Script {
    let script = Script::seeded([7; 32]);
    faults.into_iter().for_each(|fault| {
        script.add(fault);
    });
    script
}

fn turns(script: &Script, endpoint: Endpoint, of: usize) -> Vec<usize> {
    (1..=of).filter(|_| script.next(endpoint, NOW).is_some()).collect()
}

#[test]
fn each_fault_has_its_turn_and_leaves_the_list_after_it() {
    let next = script([Fault::once(Endpoint::Order, What::Frozen).when(When::Next(2))]);
    assert_eq!(turns(&next, Endpoint::NewOrder, 3), [0; 0]);
    assert_eq!(turns(&next, Endpoint::Order, 4), [1, 2]);
    let nth = script([Fault::once(Endpoint::Order, What::Frozen).when(When::Nth(3))]);
    assert_eq!(turns(&nth, Endpoint::Order, 5), [3]);
    assert!(next.entries().is_empty() && nth.entries().is_empty());
    assert_eq!((nth.asked(Endpoint::Order), nth.happened().len()), (5, 1));
    let always = script([Fault::once(At::Signed, What::BadNonce).when(When::Always)]);
    assert_eq!(turns(&always, Endpoint::Directory, 2).len() + turns(&always, Endpoint::NewNonce, 2).len(), 0);
    assert_eq!(turns(&always, Endpoint::Finalize, 3), [1, 2, 3]);
    let no = always.entries()[0].no;
    assert!(always.remove(no) && !always.remove(no));
    assert_eq!(turns(&always, Endpoint::Finalize, 3), [0; 0]);
}

#[test]
fn the_first_of_the_list_wins_and_the_next_waits_for_its_turn() {
    let both = script([Fault::once(Endpoint::Order, What::Frozen), Fault::once(At::Everywhere, What::BadNonce)]);
    assert_eq!(both.next(Endpoint::Order, NOW), Some(What::Frozen));
    assert_eq!(both.next(Endpoint::Order, NOW), Some(What::BadNonce));
    assert_eq!(both.next(Endpoint::Order, NOW), None);
}

#[test]
fn chance_has_the_share_asked_for_and_one_seed_one_story() {
    let story =
        || turns(&script([Fault::once(At::Everywhere, What::BadNonce).when(When::Chance(5))]), Endpoint::Order, 2000);
    let seen = story();
    assert!((60..150).contains(&seen.len()), "{} of 2000, expected about 100", seen.len());
    assert_eq!(seen, story());
}

#[test]
fn a_fault_is_read_from_json_as_people_write_it() {
    for (text, meant) in [
        (json!({"at": "new-order", "what": "frozen"}), Fault::once(Endpoint::NewOrder, What::Frozen)),
        (
            json!({"at": "signed", "when": {"next": 5}, "what": "bad_nonce"}),
            Fault::once(At::Signed, What::BadNonce).when(When::Next(5)),
        ),
        (
            json!({"at": "new-order", "when": "always", "what": {"limited": {"limit": "exact_set", "retry_after": {"date": 60}}}}),
            Fault::once(
                Endpoint::NewOrder,
                What::Limited { limit: Limit::ExactSet, retry_after: Some(RetryAfter::Date(60)) },
            )
            .when(When::Always),
        ),
        (
            json!({"at": "finalize", "when": {"nth": 2}, "what": {"books": {"certificate": {"flaw": "other_key"}}}}),
            Fault::once(Endpoint::Finalize, Twist::Certificate { flaw: Flaw::OtherKey }).when(When::Nth(2)),
        ),
        (
            json!({"at": "everywhere", "when": {"chance": 20}, "what": {"refused": {"kind": "userActionRequired", "detail": "x"}}}),
            Fault::once(At::Everywhere, What::refused(Kind::UserActionRequired, "x")).when(When::Chance(20)),
        ),
    ] {
        let read: Fault = serde_json::from_value(text.clone()).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(read, meant);
        assert_eq!(serde_json::from_str::<Fault>(&serde_json::to_string(&read).unwrap()).unwrap(), meant);
    }
    let odd = serde_json::from_value::<Fault>(json!({"at": "nowhere", "what": "frozen"})).unwrap_err().to_string();
    assert!(odd.contains("\"nowhere\"") && odd.contains("new-order"), "{odd}");
    assert!(serde_json::from_value::<Fault>(json!({"at": "order", "what": "frozen", "wenn": "always"})).is_err());
}

#[test]
fn both_forms_of_retry_after_are_written() {
    assert_eq!(RetryAfter::Seconds(60).value(NOW).unwrap(), "60");
    assert_eq!(RetryAfter::Date(60).value(NOW).unwrap(), "Fri, 15 Jan 2027 08:01:00 GMT");
    assert_eq!(RetryAfter::Text("soon".to_owned()).value(NOW).unwrap(), "soon");
    assert_eq!(RetryAfter::Text("a\nb".to_owned()).value(NOW), None);
}

proptest! {
    #[test]
    fn any_text_is_survived(text in ".{0,60}", ahead: u64, now: i64) {
        prop_assert!(serde_json::from_str::<Fault>(&text).is_err());
        prop_assert!(text.parse::<At>().is_err() || text.is_ascii());
        prop_assert!(RetryAfter::Date(ahead).value(Moment::from_micros(now)).is_some());
    }
}
