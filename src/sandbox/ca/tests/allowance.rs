//! What the CA allows, counted by itself.

use std::time::Duration;

use rcgen::{CertificateParams, DistinguishedName, KeyPair};

use crate::model::moment::Moment;
use crate::sandbox::ca::{AccountNo, CaState, Kind, Limit, Problem, Rate, Settings};

const NOW: Moment = Moment::from_secs(1_800_000_000);
const HOUR: Duration = Duration::from_secs(3600);

fn ca(limit: Limit, burst: u32) -> (CaState, AccountNo) {
    let mut ca = CaState::new(Settings::default(), [8; 32]).unwrap();
    let (account, _) = ca.new_account("thumb");
    ca.allow(limit, Rate { burst, per: HOUR });
    (ca, account)
}

fn order(ca: &mut CaState, account: &AccountNo, name: &str, now: Moment) -> Result<(), Problem> {
    ca.new_order(account, &[name.to_owned()], now).map(|_| ())
}

fn certificate(ca: &mut CaState, account: &AccountNo, name: &str) {
    let made = ca.new_order(account, &[name.to_owned()], NOW).unwrap();
    ca.respond(account, &made.authorizations[0], NOW).unwrap().unwrap();
    ca.validated(&made.authorizations[0], Ok(()), NOW);
    let mut params = CertificateParams::new([name.to_owned()]).unwrap();
    params.distinguished_name = DistinguishedName::new();
    let csr = params.serialize_request(&KeyPair::generate().unwrap()).unwrap();
    ca.finalize(account, &made.no, csr.der(), NOW).unwrap();
}

#[test]
fn orders_of_an_account_refill_one_by_one() {
    let (mut ca, account) = ca(Limit::NewOrders, 4);
    for _ in 0..4 {
        order(&mut ca, &account, "a.shop.test", NOW).unwrap();
    }
    let no = order(&mut ca, &account, "a.shop.test", NOW).unwrap_err();
    assert_eq!((no.kind, no.status, no.retry_after), (Kind::RateLimited, 429, Some(HOUR / 4)));
    assert!(no.detail.starts_with("too many new orders"), "{}", no.detail);
    // A refusal counts for nothing, and another account has an allowance of its own.
    let (other, _) = ca.new_account("other");
    order(&mut ca, &other, "a.shop.test", NOW).unwrap();
    order(&mut ca, &account, "a.shop.test", NOW + HOUR / 4 - Duration::from_micros(1)).unwrap_err();
    order(&mut ca, &account, "a.shop.test", NOW + HOUR / 4).unwrap();
    order(&mut ca, &account, "a.shop.test", NOW + HOUR / 4).unwrap_err();
    assert_eq!((ca.counters().limits_passed, ca.counters().orders_created), (3, 6));
}

#[test]
fn certificates_count_when_they_are_issued() {
    let (mut domain, account) = ca(Limit::RegisteredDomain, 2);
    certificate(&mut domain, &account, "a.shop.test");
    certificate(&mut domain, &account, "b.shop.test");
    let no = order(&mut domain, &account, "c.shop.test", NOW).unwrap_err();
    assert!(no.detail.contains("already issued for \"shop.test\""), "{}", no.detail);
    order(&mut domain, &account, "c.other.test", NOW).unwrap();

    let (mut set, account) = ca(Limit::ExactSet, 1);
    order(&mut set, &account, "a.shop.test", NOW).unwrap();
    certificate(&mut set, &account, "a.shop.test");
    let no = order(&mut set, &account, "a.shop.test", NOW).unwrap_err();
    assert!(no.detail.contains("exact set"), "{}", no.detail);
    order(&mut set, &account, "b.shop.test", NOW).unwrap();
    order(&mut set, &account, "a.shop.test", NOW + HOUR).unwrap();
}

#[test]
fn a_name_that_fails_is_refused_for_its_account_alone() {
    let (mut ca, account) = ca(Limit::FailedAuthorizations, 1);
    let made = ca.new_order(&account, &["a.shop.test".to_owned()], NOW).unwrap();
    ca.respond(&account, &made.authorizations[0], NOW).unwrap().unwrap();
    ca.validated(&made.authorizations[0], Err(Problem::malformed("no")), NOW);
    let no = order(&mut ca, &account, "a.shop.test", NOW).unwrap_err();
    assert!(no.detail.starts_with("too many failed authorizations"), "{}", no.detail);
    order(&mut ca, &account, "b.shop.test", NOW).unwrap();
    let (other, _) = ca.new_account("other");
    order(&mut ca, &other, "a.shop.test", NOW).unwrap();
}
