use http::StatusCode;
use hyper::body::Bytes;
use serde_json::json;

use super::*;

const WAIT: Option<Duration> = Some(Duration::from_secs(599));

/// The judgement of an answer to a POST.
fn answer(call: Call, status: u16, body: &str) -> AcmeError {
    AcmeError::from_exchange(call, exchange(status, body), Cause("lower".to_owned()))
}

fn exchange(status: u16, body: &str) -> Exchange {
    Exchange {
        method: Method::POST,
        status: Some(StatusCode::from_u16(status).unwrap()),
        retry_after: (status == 429 || status == 503).then_some(WAIT).flatten(),
        body: Bytes::from(body.to_owned()),
        ..Exchange::default()
    }
}

fn problem(kind: &str) -> String {
    json!({"type": format!("urn:ietf:params:acme:error:{kind}"), "detail": "d"}).to_string()
}

fn broken(call: Call, method: Method, failure: Failure) -> AcmeError {
    let seen = Exchange { method, failure: Some(failure), ..Exchange::default() };
    AcmeError::from_exchange(call, seen, Cause("lower".to_owned()))
}

#[test]
fn every_problem_type_has_its_consequence() {
    for (kind, class) in [
        ("badNonce", Class::StepAgain),
        ("orderNotReady", Class::StepAgain),
        ("serverInternal", Class::RetryAt(None)),
        ("rateLimited", Class::RetryAt(None)),
        ("caa", Class::WaitFor(Actor::Tenant)),
        ("dns", Class::WaitFor(Actor::Tenant)),
        ("connection", Class::WaitFor(Actor::Tenant)),
        ("tls", Class::WaitFor(Actor::Tenant)),
        ("incorrectResponse", Class::WaitFor(Actor::Tenant)),
        ("accountDoesNotExist", Class::WaitFor(Actor::Platform)),
        ("badPublicKey", Class::WaitFor(Actor::Platform)),
        ("badSignatureAlgorithm", Class::WaitFor(Actor::Platform)),
        ("externalAccountRequired", Class::WaitFor(Actor::Platform)),
        ("invalidContact", Class::WaitFor(Actor::Platform)),
        ("unsupportedContact", Class::WaitFor(Actor::Platform)),
        ("unauthorized", Class::WaitFor(Actor::Platform)),
        ("userActionRequired", Class::WaitFor(Actor::Platform)),
        ("alreadyRevoked", Class::GiveUp),
        ("alreadyReplaced", Class::GiveUp),
        ("badCSR", Class::GiveUp),
        ("badRevocationReason", Class::GiveUp),
        ("invalidProfile", Class::GiveUp),
        ("malformed", Class::GiveUp),
        ("rejectedIdentifier", Class::GiveUp),
        ("unsupportedIdentifier", Class::GiveUp),
        ("somethingNew", Class::GiveUp),
    ] {
        assert_eq!(answer(Call::NewOrder, 403, &problem(kind)).class(), class, "{kind}");
    }
    assert_eq!(answer(Call::Finalize, 403, &problem("unauthorized")).class(), Class::GiveUp);
    let compound = json!({"type": "urn:ietf:params:acme:error:compound", "subproblems": [
        {"type": "urn:ietf:params:acme:error:compound"}, {"type": "urn:ietf:params:acme:error:rejectedIdentifier"}]});
    assert_eq!(answer(Call::NewOrder, 400, &compound.to_string()).class(), Class::GiveUp);
}

#[test]
fn limits_keep_their_time_and_a_pause_is_no_limit() {
    let limited = answer(Call::NewOrder, 429, &problem("rateLimited"));
    assert_eq!((limited.class(), limited.is_rate_limited(), limited.acted_on), (Class::RetryAt(WAIT), true, false));
    // A limit told by 503 was surely not acted on; any other 503 may have been.
    assert_eq!(answer(Call::NewOrder, 503, &problem("rateLimited")).class(), Class::RetryAt(WAIT));
    assert_eq!(answer(Call::NewOrder, 503, "<html>busy").class(), Class::Lost);
    assert_eq!(answer(Call::NewOrder, 429, "<html>slow down").class(), Class::RetryAt(WAIT));
    let paused = json!({"type": "urn:ietf:params:acme:error:rateLimited",
        "detail": "Your account is temporarily prevented from requesting certificates for a.test and possibly others."});
    assert_eq!(answer(Call::NewOrder, 403, &paused.to_string()).class(), Class::WaitFor(Actor::Platform));
}

#[test]
fn only_a_new_order_whose_answer_is_unknown_is_lost() {
    let post = |call, failure| broken(call, Method::POST, failure);
    assert_eq!(post(Call::NewOrder, Failure::NoAnswer).class(), Class::Lost);
    assert_eq!(post(Call::NewOrder, Failure::NotSent).class(), Class::RetryAt(None));
    assert_eq!(post(Call::Finalize, Failure::NoAnswer).class(), Class::RetryAt(None));
    // The nonce or the directory did not come: the order was not asked for.
    assert_eq!(broken(Call::NewOrder, Method::HEAD, Failure::NoAnswer).class(), Class::RetryAt(None));
    assert_eq!(broken(Call::NewOrder, Method::GET, Failure::NoAnswer).class(), Class::RetryAt(None));
    assert_eq!(answer(Call::NewOrder, 500, &problem("serverInternal")).class(), Class::Lost);
    assert_eq!(answer(Call::NewOrder, 201, "rubbish").class(), Class::Lost);
    assert_eq!(answer(Call::NewOrder, 403, "<html>wall").class(), Class::RetryAt(None));
    assert_eq!(answer(Call::Order, 500, "").class(), Class::RetryAt(None));
    assert_eq!(answer(Call::Order, 200, "rubbish").class(), Class::RetryAt(None));
}

#[test]
fn what_is_missing_is_looked_for_again_and_a_directory_that_moved_is_read_again() {
    for status in [404, 405, 410] {
        assert_eq!(answer(Call::Order, status, "").class(), Class::Missing);
        assert_eq!(answer(Call::Certificate, status, &problem("malformed")).class(), Class::Missing);
        assert_eq!(answer(Call::NewOrder, status, &problem("malformed")).class(), Class::RetryAt(None));
        // A word about something else than the URL is taken as it is.
        assert_eq!(answer(Call::Order, status, &problem("accountDoesNotExist")).class(), Class::WaitFor(Actor::Platform));
        assert!(answer(Call::NewOrder, status, "").leads_nowhere());
    }
    assert!(!answer(Call::NewOrder, 500, "").leads_nowhere());
    let at = |status| AcmeError::not_there(Call::Finalize, status, None, WAIT).class();
    assert_eq!(at(OrderStatus::Invalid), Class::GiveUp);
    assert_eq!(at(OrderStatus::Pending), Class::RetryAt(WAIT));
    assert_eq!(AcmeError::ours(Call::NewOrder, "no key".to_owned()).class(), Class::WaitFor(Actor::Platform));
    assert!(answer(Call::NewOrder, 409, &problem("alreadyReplaced")).refuses_replaces());
}

#[test]
fn a_replaces_is_refused_in_many_ways_and_some_refusals_are_none() {
    for (status, kind) in [
        (409, "alreadyReplaced"),
        (400, "malformed"),
        (403, "unauthorized"),
        (404, "malformed"),
        (409, "conflict"),
        (400, "x"),
    ] {
        assert!(answer(Call::NewOrder, status, &problem(kind)).refuses_replaces(), "{status} {kind}");
    }
    assert!(answer(Call::NewOrder, 409, "conflict").refuses_replaces());
    for (status, kind) in [
        (429, "rateLimited"),
        (400, "badNonce"),
        (400, "rejectedIdentifier"),
        (403, "caa"),
        (400, "accountDoesNotExist"),
        (400, "invalidProfile"),
        (403, "userActionRequired"),
        (500, "serverInternal"),
        (500, "malformed"),
        (503, "malformed"),
    ] {
        assert!(!answer(Call::NewOrder, status, &problem(kind)).refuses_replaces(), "{status} {kind}");
    }
    for (call, status, body) in [
        (Call::NewOrder, 403, "<html>wall".to_owned()),
        (Call::NewOrder, 404, String::new()),
        (Call::NewOrder, 429, String::new()),
        (Call::Finalize, 409, problem("alreadyReplaced")),
    ] {
        assert!(!answer(call, status, &body).refuses_replaces(), "{call:?} {status} {body}");
    }
}

#[test]
fn the_message_says_what_was_seen_once() {
    let limited = answer(Call::NewOrder, 429, &problem("rateLimited"));
    assert_eq!(
        limited.to_string(),
        "placing the order failed: the CA refused: urn:ietf:params:acme:error:rateLimited: d (HTTP 429), to be asked again in 599 s"
    );
    assert_eq!(limited.cause, None);
    let silent = broken(Call::Order, Method::POST, Failure::NoAnswer);
    assert_eq!(silent.to_string(), "reading the order failed: the CA gave no whole answer");
    assert_eq!(std::error::Error::source(&silent).unwrap().to_string(), "lower");
}

#[test]
fn a_redirect_is_told_and_is_no_order() {
    for status in [301, 302, 307, 308] {
        let mut seen = exchange(status, "");
        seen.location = Some("http://192.0.2.1/\r\nnew-order".to_owned());
        let moved = AcmeError::from_exchange(Call::NewOrder, seen, Cause("lower".to_owned()));
        assert!(!moved.acted_on && moved.leads_nowhere() && moved.class() == Class::RetryAt(None), "{status}");
        let said = moved.cause.unwrap().to_string();
        assert_eq!(said, "the answer points to \"http://192.0.2.1/new-order\", and redirects are not followed");
    }
}

#[test]
fn a_page_is_told_in_words_and_never_in_markup() {
    let page = "<html><title>Down</title><script>alert(1)</script><body>for maintenance</body></html>";
    for status in [200, 403, 503] {
        let failed = answer(Call::Order, status, page);
        assert_eq!(failed.cause.unwrap().to_string(), "the answer is no ACME document; it reads: Down for maintenance");
    }
    let long = answer(Call::Order, 502, &"x".repeat(100_000));
    assert!(long.cause.unwrap().to_string().len() < 300);
    assert_eq!(answer(Call::Order, 502, "").cause.unwrap().to_string(), "lower", "an empty body says nothing");
}
