//! The table.

use std::time::Duration;

use nameplate::sandbox::ca::{At, Ended, Endpoint, Fault, Flaw, Kind, Limit, RetryAfter, Twist, What, When};

use super::{Case, HOUR, case};

const DAY: Duration = Duration::from_secs(24 * 3600);
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const PAGE: &str = "The CA is down for maintenance";

/// What an order passes on its way.
const WAY: [Endpoint; 8] = [
    Endpoint::Directory,
    Endpoint::NewNonce,
    Endpoint::NewOrder,
    Endpoint::Authorization,
    Endpoint::Challenge,
    Endpoint::Order,
    Endpoint::Finalize,
    Endpoint::Certificate,
];

fn once(at: Endpoint, what: impl Into<What>) -> [Fault; 1] {
    [Fault::once(at, what)]
}

fn at(what: &str, endpoint: Endpoint) -> String {
    format!("{what} at {}", endpoint.name())
}

/// Every limit, with every form of Retry-After. Where the header says nothing the CA's words say when; a busy service says not even
/// that.
pub fn limits() -> Vec<Case> {
    let mut cases = Vec::new();
    for (limit, words, own) in [
        (Limit::NewOrders, "too many new orders (300) from this account", Duration::from_secs(36)),
        (Limit::RegisteredDomain, "too many certificates (50) already issued for \\\"acme.test\\\"", 201 * MINUTE),
        (Limit::ExactSet, "already issued for this exact set of identifiers", 34 * HOUR - MINUTE),
        (Limit::FailedAuthorizations, "too many failed authorizations (5) for \\\"support.acme.test\\\"", 11 * MINUTE),
        (Limit::Busy, "Service busy; retry later.", HOUR),
    ] {
        for (retry_after, waits) in [
            (None, own),
            (Some(RetryAfter::Seconds(4 * 3600)), 4 * HOUR),
            (Some(RetryAfter::Date(3 * 24 * 3600)), 72 * HOUR),
            (Some(RetryAfter::Text("-5".to_owned())), own),
            (Some(RetryAfter::Text("soon".to_owned())), own),
        ] {
            let name = format!("{limit:?} with {retry_after:?}");
            let what = What::Limited { limit, retry_after };
            cases.push(case(name, once(Endpoint::NewOrder, what)).says(words).waits(waits, waits + 2 * HOUR));
        }
    }
    // The link of a pause is the operator's: run() sees to it that no tenant is shown it.
    let paused = Fault::once(Endpoint::NewOrder, What::limited(Limit::Paused)).when(When::Always);
    cases.push(case("paused until somebody visits the portal", [paused]).says("the CA paused this name").lasts(2 * HOUR));
    let storm = Fault::once(Endpoint::NewOrder, What::limited_for(Limit::NewOrders, 600)).when(When::Next(5));
    cases.push(case("limited five times in a row", [storm]).says("too many new orders").waits(50 * MINUTE, 3 * HOUR));
    let accounts = Fault::once(Endpoint::NewAccount, What::limited(Limit::NewAccounts)).when(When::Next(4));
    cases.push(case("no account for a while", [accounts]).waits(Duration::ZERO, 12 * HOUR));
    cases.push(
        case("busy while an order is read", once(Endpoint::Order, What::limited_for(Limit::Busy, 900)))
            .says("Service busy")
            .waits(15 * MINUTE, HOUR),
    );
    cases
}

/// Problem documents at newOrder, and after it.
pub fn refusals() -> Vec<Case> {
    let mut cases = Vec::new();
    let refused = |kind| once(Endpoint::NewOrder, What::refused(kind, "no: \"<b>policy</b>\" forbids this"));
    for kind in [
        Kind::RejectedIdentifier,
        Kind::UnsupportedIdentifier,
        Kind::Caa,
        Kind::Dns,
        Kind::Malformed,
        Kind::InvalidProfile,
        Kind::ServerInternal,
        Kind::Compound,
    ] {
        cases.push(case(format!("{kind:?} at newOrder"), refused(kind)).says("forbids this"));
    }
    // About the account, not the name: everybody waits until the CA says of the account that all is well, which it is asked after
    // a minute at the earliest.
    for kind in [Kind::UserActionRequired, Kind::ExternalAccountRequired, Kind::Unauthorized, Kind::AccountDoesNotExist] {
        cases.push(case(format!("{kind:?} at newOrder"), refused(kind)).says("forbids this").waits(MINUTE, 2 * HOUR));
    }
    for (endpoint, kind) in [
        (Endpoint::Finalize, Kind::BadCsr),
        (Endpoint::Finalize, Kind::Unauthorized),
        (Endpoint::Finalize, Kind::Caa),
        (Endpoint::Challenge, Kind::Malformed),
        (Endpoint::Order, Kind::Unauthorized),
    ] {
        let refused = What::refused(kind, "the CA will not");
        cases.push(
            case(format!("{kind:?} at {}", endpoint.name()), once(endpoint, refused)).says("the CA will not").orders(2),
        );
    }
    // Once the CSR is handed in, a refusal of whatever kind is a wait: the certificate is there.
    for kind in [
        Kind::Unauthorized,
        Kind::Malformed,
        Kind::AccountDoesNotExist,
        Kind::UserActionRequired,
        Kind::RejectedIdentifier,
        Kind::Caa,
        Kind::BadCsr,
    ] {
        let refused = Fault::once(Endpoint::Certificate, What::refused(kind, "the CA will not")).when(When::Next(3));
        cases.push(case(format!("{kind:?} at the certificate"), [refused]).says("the CA will not"));
    }
    for endpoint in
        [Endpoint::Finalize, Endpoint::Challenge, Endpoint::Authorization, Endpoint::Order, Endpoint::Certificate]
    {
        let refused = What::refused(Kind::ServerInternal, "the database is away");
        cases.push(case(at("serverInternal", endpoint), once(endpoint, refused)).says("the database is away"));
    }
    cases.push(case("orderNotReady at finalize", once(Endpoint::Finalize, What::refused(Kind::OrderNotReady, "not yet"))));
    cases
}

/// Pages, redirects, nonces.
pub fn pages() -> Vec<Case> {
    let mut cases = Vec::new();
    for endpoint in WAY {
        cases.push(case(at("503 page", endpoint), once(endpoint, What::page(503))));
    }
    for status in [400, 403, 404, 408, 500, 502, 504] {
        cases.push(case(format!("page {status} at newOrder"), once(Endpoint::NewOrder, What::page(status))).says(PAGE));
    }
    // Whose limit it is, the page does not say; the account waits as long as it waits for a limit without a time.
    let limited = case("page 429 at newOrder", once(Endpoint::NewOrder, What::page(429)));
    cases.push(limited.says(PAGE).waits(HOUR, 2 * HOUR));
    for retry_after in [RetryAfter::Seconds(1800), RetryAfter::Date(1800)] {
        let told = What::Page { status: 503, retry_after: Some(retry_after.clone()) };
        for endpoint in [Endpoint::NewOrder, Endpoint::Authorization, Endpoint::Order, Endpoint::Certificate] {
            let name = at(&format!("503 page with {retry_after:?}"), endpoint);
            cases.push(case(name, once(endpoint, told.clone())).says(PAGE).waits(30 * MINUTE - SECOND, HOUR));
        }
    }
    let outage = Fault::once(At::Everywhere, What::page(502)).when(When::Always);
    cases.push(case("an outage of three hours", [outage]).lasts(3 * HOUR));
    for endpoint in [Endpoint::Directory, Endpoint::NewOrder, Endpoint::Order, Endpoint::Finalize] {
        let to = What::Redirect { to: "http://169.254.169.254/latest/meta-data".to_owned() };
        cases.push(case(at("a redirect", endpoint), once(endpoint, to)));
    }
    let to = What::Redirect { to: "https://192.0.2.1/new-order".to_owned() };
    cases.push(case("a redirect is not followed", once(Endpoint::NewOrder, to)).says("redirects are not followed"));
    for times in [3, 5, 20] {
        let storm = Fault::once(At::Signed, What::BadNonce).when(When::Next(times));
        // Most of them meet the making of the account, which is tried ever more seldom.
        cases.push(case(format!("{times} refused nonces"), [storm]).waits(Duration::ZERO, 12 * HOUR));
    }
    let half = Fault::once(At::Signed, What::BadNonce).when(When::Chance(50));
    cases.push(case("half of all nonces are refused", [half]).waits(Duration::ZERO, 3 * HOUR));
    let never = Fault::once(Endpoint::Finalize, What::BadNonce).when(When::Always);
    cases.push(case("no nonce is good for finalize", [never]).says("badNonce").lasts(HOUR));
    let never = Fault::once(Endpoint::NewOrder, What::BadNonce).when(When::Always);
    cases.push(case("no nonce is good for newOrder", [never]).says("badNonce").lasts(HOUR));
    cases.push(case("no nonce is given", once(Endpoint::NewNonce, What::NoNonce)));
    cases.push(case("an answer without a nonce", once(Endpoint::NewOrder, What::NoNonce)));
    cases
}

/// Slow, frozen, broken.
pub fn connections() -> Vec<Case> {
    let mut cases = Vec::new();
    let slow = Fault::once(At::Everywhere, What::Slow { seconds: 6 }).when(When::Always);
    cases.push(case("everything takes six seconds", [slow]));
    for endpoint in WAY {
        cases.push(case(at("frozen", endpoint), once(endpoint, What::Frozen)));
        cases.push(case(at("dropped before", endpoint), once(endpoint, What::DropBefore)));
        // An order whose answer never came is the one that may be made twice.
        let orders = if endpoint == Endpoint::NewOrder { 2 } else { 1 };
        cases.push(case(at("dropped after", endpoint), once(endpoint, What::DropAfter)).orders(orders));
    }
    cases.push(case("frozen after newOrder", once(Endpoint::NewOrder, What::FrozenAfter)).orders(2));
    cases.push(case("frozen after finalize", once(Endpoint::Finalize, What::FrozenAfter)));
    let frozen = Fault::once(At::Everywhere, What::Frozen).when(When::Always);
    cases.push(case("frozen for an hour", [frozen]).lasts(HOUR));
    cases
}

/// The CA acted; its answer cannot be read.
pub fn answers() -> Vec<Case> {
    let mut cases = Vec::new();
    for endpoint in WAY {
        for what in [What::CutShort, What::HalfDocument, What::Huge, What::Garbled] {
            // Nothing follows newNonce and the challenge's answer but their heads.
            if !matches!(endpoint, Endpoint::NewNonce) {
                cases.push(case(at(what.name(), endpoint), once(endpoint, what)));
            }
        }
    }
    for member in ["newNonce", "newAccount", "newOrder", "meta"] {
        let name = format!("a directory without {member}");
        cases.push(case(name, [Fault::once(Endpoint::Directory, What::without(member)).when(When::Next(2))]));
    }
    let moved = What::with("newOrder", "https://127.0.0.1:1/new-order");
    cases.push(case("newOrder is elsewhere", [Fault::once(Endpoint::Directory, moved).when(When::Nth(2))]));
    for (endpoint, member) in [
        (Endpoint::NewOrder, "status"),
        (Endpoint::NewOrder, "authorizations"),
        (Endpoint::Order, "status"),
        (Endpoint::Order, "finalize"),
        (Endpoint::Finalize, "status"),
        (Endpoint::Authorization, "status"),
        (Endpoint::Authorization, "identifier"),
    ] {
        cases.push(case(at(&format!("no {member}"), endpoint), once(endpoint, What::without(member))));
    }
    cases.push(case("an unheard-of status", once(Endpoint::Order, What::with("status", "contemplating"))));
    cases
}

/// Orders and authorizations.
pub fn books() -> Vec<Case> {
    let mut cases = vec![
        case("an invalid order", once(Endpoint::Order, Twist::OrderInvalid { detail: "the signer is on fire".to_owned() }))
            .says("the signer is on fire")
            .orders(2),
        case("an expired order", once(Endpoint::Order, Twist::OrderExpired)).orders(2),
        case("an order that vanished", once(Endpoint::Order, Twist::OrderVanished)).says("there is no order").orders(2),
        case("an order that vanished at once", once(Endpoint::NewOrder, Twist::OrderVanished))
            .says("there is no order")
            .orders(2),
        case("an order that vanished before the CSR", once(Endpoint::Finalize, Twist::OrderVanished)).orders(2),
        case(
            "an order not found by one look",
            once(Endpoint::Order, What::refused(Kind::Malformed, "No order for ID 1"))
                .map(|fault| Fault { what: not_found(), ..fault }),
        )
        .says("No order for ID 1"),
        case("a certificate not found by five looks", [Fault::once(Endpoint::Certificate, not_found()).when(When::Next(5))])
            .says("No order for ID 1"),
        case("an order that is slow to notice", once(Endpoint::NewOrder, Twist::OrderLags { seconds: 3600 }))
            .waits(HOUR, 2 * HOUR),
        case("an order that never notices", once(Endpoint::NewOrder, Twist::OrderLags { seconds: 86_400 }))
            .says("no progress")
            .orders(2)
            .waits(2 * HOUR, 3 * HOUR),
        case("processing for three hours", once(Endpoint::Finalize, Twist::ProcessingLasts { seconds: 3 * 3600 }))
            .waits(3 * HOUR, 4 * HOUR),
        case("processing for ever", once(Endpoint::Finalize, Twist::ProcessingLasts { seconds: 1_000_000 }))
            .says("no progress")
            .orders(2)
            .certificates(2)
            .waits(24 * HOUR, 49 * HOUR),
        case("a name proven before", once(Endpoint::NewOrder, Twist::AuthorizationReused)),
        case("no http-01", once(Endpoint::NewOrder, Twist::Offers { challenges: vec!["dns-01".to_owned()] }))
            .says("offers no http-01")
            .orders(2),
        case("no challenge at all", once(Endpoint::NewOrder, Twist::Offers { challenges: Vec::new() }))
            .says("offers no http-01")
            .orders(2),
        case(
            "seen from elsewhere it fails",
            once(
                Endpoint::NewOrder,
                Twist::ValidationFails {
                    kind: Kind::Unauthorized,
                    detail: "During secondary validation: 192.0.2.80: Invalid response from http://support.acme.test: 404"
                        .to_owned(),
                },
            ),
        )
        .says("During secondary validation")
        .orders(2),
        case(
            "a failure that the authorization does not notice",
            [
                Fault::once(
                    Endpoint::NewOrder,
                    Twist::ValidationFails { kind: Kind::Connection, detail: "Timeout during connect".to_owned() },
                ),
                Fault::once(Endpoint::Authorization, Twist::AuthorizationLags { seconds: 86_400 }),
            ],
        )
        .orders(2)
        .waits(2 * HOUR, 3 * HOUR),
    ];
    for status in [Ended::Revoked, Ended::Deactivated, Ended::Expired] {
        let ends = Twist::AuthorizationEnds { status };
        cases.push(case(format!("{status:?} before the challenge"), once(Endpoint::Authorization, ends.clone())).orders(2));
        cases.push(case(format!("{status:?} before the CSR"), once(Endpoint::Finalize, ends)).orders(2));
    }
    cases
}

fn not_found() -> What {
    What::Refused { kind: Kind::Malformed, detail: "No order for ID 1".to_owned(), status: Some(404), retry_after: None }
}

/// What comes at the end is not what was asked for. Whatever it is, another one is not ordered before a day has passed.
pub fn certificates() -> Vec<Case> {
    let late = 26 * HOUR;
    let flawed = |flaw| once(Endpoint::Finalize, Twist::Certificate { flaw });
    vec![
        case("for another key", flawed(Flaw::OtherKey)).says("for another key").orders(2).certificates(2).waits(DAY, late),
        case("for other names", flawed(Flaw::OtherNames))
            .says("other.support.acme.test")
            .orders(2)
            .certificates(2)
            .waits(DAY, late),
        case("under another chain", flawed(Flaw::OtherChain))
            .says("not issued by the one after it")
            .orders(2)
            .certificates(2)
            .waits(DAY, late),
        case("already over", flawed(Flaw::Expired)).says("is valid from").orders(2).certificates(2).waits(DAY, late),
        // Nothing is wrong with it but one of the two clocks.
        case("not valid before tomorrow", flawed(Flaw::NotYetValid)).says("is valid from").waits(23 * HOUR, DAY),
        case(
            "downloads that break for a while",
            [Fault::once(Endpoint::Certificate, What::HalfDocument).when(When::Next(6))],
        )
        .says("chain was refused"),
        case("gone before it was downloaded", once(Endpoint::Certificate, Twist::OrderVanished))
            .says("there is no")
            .orders(2)
            .certificates(2)
            .waits(DAY, late),
    ]
}
