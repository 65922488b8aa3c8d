//! Orders, authorizations and certificates, driven by hand.

use std::time::Duration;

use rcgen::{CertificateParams, DistinguishedName, KeyPair};

use crate::model::moment::Moment;
use crate::sandbox::ca::{
    AccountNo, AuthorizationStatus, CaState, ChallengeStatus, Kind, OrderStatus, OrderView, Problem, Settings,
};

const NOW: Moment = Moment::from_secs(1_800_000_000);

fn ca(settings: Settings) -> (CaState, AccountNo) {
    let mut ca = CaState::new(settings, [7; 32]).unwrap();
    let (account, created) = ca.new_account("thumb");
    assert!(created);
    (ca, account)
}

fn names(list: &[&str]) -> Vec<String> {
    list.iter().map(|&n| n.to_owned()).collect()
}

fn csr(list: &[&str]) -> Vec<u8> {
    let mut params = CertificateParams::new(names(list)).unwrap();
    params.distinguished_name = DistinguishedName::new();
    params.serialize_request(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
}

/// An order whose names are all proven.
fn ready(ca: &mut CaState, account: &AccountNo, list: &[&str]) -> OrderView {
    let order = ca.new_order(account, &names(list), NOW).unwrap();
    assert_eq!(order.status, OrderStatus::Pending);
    for no in &order.authorizations {
        let ask = ca.respond(account, no, NOW).unwrap().unwrap();
        assert!(ask.judge(ask.key_authorization.as_bytes()).is_ok());
        ca.validated(no, Ok(()), NOW);
    }
    ca.order(account, &order.no, NOW).unwrap()
}

#[test]
fn an_order_goes_from_pending_to_a_chain_that_covers_its_names() {
    let (mut ca, account) = ca(Settings::default());
    let order = ready(&mut ca, &account, &["a.shop.test", "B.shop.test"]);
    assert_eq!(order.status, OrderStatus::Ready);
    assert!(ca.certificate(&account, &order.no, NOW).is_err());
    let order = ca.finalize(&account, &order.no, &csr(&["b.shop.test", "a.shop.test"]), NOW).unwrap();
    assert_eq!(order.status, OrderStatus::Valid);
    let chain = ca.certificate(&account, &order.no, NOW).unwrap().to_owned();
    let pems: Vec<_> = x509_parser::pem::Pem::iter_from_buffer(chain.as_bytes()).map(Result::unwrap).collect();
    assert_eq!(pems.len(), 2);
    let (leaf, intermediate) = (pems[0].parse_x509().unwrap(), pems[1].parse_x509().unwrap());
    let root_pem = ca.authority().root_pem();
    let (_, root) = x509_parser::pem::parse_x509_pem(root_pem.as_bytes()).unwrap();
    assert!(leaf.verify_signature(Some(intermediate.public_key())).is_ok());
    assert!(intermediate.verify_signature(Some(root.parse_x509().unwrap().public_key())).is_ok());
    let sans = leaf.subject_alternative_name().unwrap().unwrap().value.general_names.len();
    assert_eq!((sans, leaf.is_ca()), (2, false));
    assert_eq!(leaf.validity().not_after.timestamp(), (NOW + Duration::from_secs(90 * 86_400)).secs());
    assert_eq!(
        ca.finalize(&account, &order.no, &csr(&["a.shop.test", "b.shop.test"]), NOW).unwrap_err().kind,
        Kind::OrderNotReady
    );
    assert_eq!(ca.counters().certificates_by_name["a.shop.test"], 1);
}

#[test]
fn two_new_orders_are_two_orders() {
    let (mut ca, account) = ca(Settings::default());
    let first = ca.new_order(&account, &names(&["a.shop.test"]), NOW).unwrap();
    let second = ca.new_order(&account, &names(&["a.shop.test"]), NOW).unwrap();
    assert_ne!(first.no, second.no);
    assert_ne!(first.authorizations, second.authorizations);
    assert_eq!((ca.counters().orders_created, ca.counters().orders_by_name["a.shop.test"]), (2, 2));
    assert_eq!(ca.new_account("thumb"), (account, false), "one key, one account");
    assert_eq!(ca.counters().accounts_created, 1);
}

#[test]
fn a_failed_challenge_makes_the_order_invalid_and_keeps_its_problem() {
    let (mut ca, account) = ca(Settings::default());
    let order = ca.new_order(&account, &names(&["a.shop.test"]), NOW).unwrap();
    let no = &order.authorizations[0];
    let ask = ca.respond(&account, no, NOW).unwrap().unwrap();
    assert_eq!(ca.authorization(&account, no, NOW).unwrap().challenge, ChallengeStatus::Processing);
    assert_eq!(ca.respond(&account, no, NOW).unwrap(), None, "announced once, looked at once");
    ca.validated(no, ask.judge(b"something else"), NOW);
    ca.validated(no, Ok(()), NOW);
    let seen = ca.authorization(&account, no, NOW).unwrap();
    assert_eq!((seen.status, seen.challenge), (AuthorizationStatus::Invalid, ChallengeStatus::Invalid));
    assert_eq!(seen.error.unwrap().kind, Kind::IncorrectResponse);
    assert_eq!(ca.deactivate_authorization(&account, no, NOW).unwrap_err().kind, Kind::Malformed);
    let order = ca.order(&account, &order.no, NOW).unwrap();
    assert_eq!((order.status, order.error), (OrderStatus::Invalid, None));
    assert_eq!(ca.counters().failed_validations_by_name["a.shop.test"], 1);
}

#[test]
fn a_csr_must_fit_and_a_refused_one_leaves_the_order_ready() {
    let (mut ca, _) = ca(Settings::default());
    let key = KeyPair::generate().unwrap();
    let thumbprint = crate::sandbox::ca::Jwk::from_point(key.public_key_raw()).unwrap().thumbprint();
    let (account, _) = ca.new_account(&thumbprint);
    let order = ready(&mut ca, &account, &["a.shop.test"]);
    let own_key = CertificateParams::new(names(&["a.shop.test"])).unwrap().serialize_request(&key).unwrap().der().to_vec();
    let mut broken = csr(&["a.shop.test"]);
    *broken.last_mut().unwrap() ^= 1;
    for bad in [csr(&["a.shop.test", "b.shop.test"]), csr(&["b.shop.test"]), csr(&[]), own_key, broken, b"junk".to_vec()] {
        assert_eq!(ca.finalize(&account, &order.no, &bad, NOW).unwrap_err().kind, Kind::BadCsr);
    }
    assert_eq!(ca.finalize(&account, &order.no, &csr(&["a.shop.test"]), NOW).unwrap().status, OrderStatus::Valid);
}

#[test]
fn time_ends_what_is_left_open_and_makes_what_takes_time() {
    let slow = Settings { issuance_takes: Duration::from_secs(30), ..Settings::default() };
    let (mut ca, account) = ca(slow);
    let open = ca.new_order(&account, &names(&["open.shop.test"]), NOW).unwrap();
    let order = ready(&mut ca, &account, &["a.shop.test"]);
    let order = ca.finalize(&account, &order.no, &csr(&["a.shop.test"]), NOW).unwrap();
    assert_eq!((order.status, order.ready_in), (OrderStatus::Processing, Some(Duration::from_secs(30))));
    assert!(ca.certificate(&account, &order.no, NOW).is_err());
    let later = NOW + Duration::from_secs(30);
    assert_eq!(ca.order(&account, &order.no, later).unwrap().status, OrderStatus::Valid);
    assert!(ca.certificate(&account, &order.no, later).is_ok());

    let late = open.expires;
    assert_eq!(ca.order(&account, &open.no, late).unwrap().status, OrderStatus::Invalid);
    assert_eq!(ca.authorization(&account, &open.authorizations[0], late).unwrap().status, AuthorizationStatus::Expired);
    assert_eq!(ca.respond(&account, &open.authorizations[0], late).unwrap_err().kind, Kind::Malformed);
    assert_eq!(ca.order(&account, &order.no, late).unwrap().status, OrderStatus::Valid);
}

#[test]
fn names_that_cannot_be_certified_are_refused_one_by_one() {
    let (mut ca, account) = ca(Settings::default());
    let refused =
        ca.new_order(&account, &names(&["*.shop.test", "ok.shop.test", "192.0.2.1", "bad_name.test"]), NOW).unwrap_err();
    assert_eq!((refused.kind, refused.subproblems.len()), (Kind::RejectedIdentifier, 3));
    assert_eq!(refused.json()["subproblems"][0]["identifier"]["value"], "*.shop.test");
    assert_eq!(ca.new_order(&account, &[], NOW).unwrap_err().kind, Kind::Malformed);
    assert_eq!(ca.counters().orders_created, 0);
}

#[test]
fn nobody_sees_or_uses_what_belongs_to_another_account() {
    let (mut ca, account) = ca(Settings::default());
    let (other, _) = ca.new_account("other");
    let order = ready(&mut ca, &account, &["a.shop.test"]);
    let no = &order.authorizations[0];
    let csr = csr(&["a.shop.test"]);
    let refusals: Vec<Problem> = [
        ca.order(&other, &order.no, NOW).err(),
        ca.authorization(&other, no, NOW).err(),
        ca.respond(&other, no, NOW).err(),
        ca.deactivate_authorization(&other, no, NOW).err(),
        ca.finalize(&other, &order.no, &csr, NOW).err(),
        ca.certificate(&other, &order.no, NOW).err(),
    ]
    .into_iter()
    .flatten()
    .collect();
    assert_eq!(refusals.iter().filter(|p| p.kind == Kind::Unauthorized).count(), 6);
    assert_eq!(ca.order(&account, &"nowhere".into(), NOW).unwrap_err().status, 404);

    ca.deactivate_authorization(&account, no, NOW).unwrap();
    assert_eq!(ca.order(&account, &order.no, NOW).unwrap().status, OrderStatus::Invalid);
    ca.deactivate_account(&account).unwrap();
    assert_eq!(ca.new_order(&account, &names(&["a.shop.test"]), NOW).unwrap_err().kind, Kind::Unauthorized);
}

#[test]
fn revocation_is_for_the_account_that_got_the_certificate_and_once() {
    let (mut ca, account) = ca(Settings::default());
    let (other, _) = ca.new_account("other");
    let order = ready(&mut ca, &account, &["a.shop.test"]);
    ca.finalize(&account, &order.no, &csr(&["a.shop.test"]), NOW).unwrap();
    let chain = ca.certificate(&account, &order.no, NOW).unwrap().to_owned();
    let leaf = x509_parser::pem::parse_x509_pem(chain.as_bytes()).unwrap().1.contents;
    assert_eq!(ca.revoke(&other, &leaf, None).unwrap_err().kind, Kind::Unauthorized);
    assert_eq!(ca.revoke(&account, &leaf, Some(7)).unwrap_err().kind, Kind::BadRevocationReason);
    assert_eq!(ca.revoke(&account, b"unknown", None).unwrap_err().status, 404);
    assert!(ca.revoke(&account, &leaf, Some(4)).is_ok());
    assert_eq!(ca.revoke(&account, &leaf, None).unwrap_err().kind, Kind::AlreadyRevoked);
}
