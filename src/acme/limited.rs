//! Which limit a refusal is about. A CA says so in words only (RFC 8555 §6.6 has one type for all): these are Let's Encrypt's
//! (`ratelimits/limiter.go` of Boulder), and what they are taken for is the widest that they can mean.

use time::OffsetDateTime;
use time::macros::format_description;

use super::error::AcmeError;
use super::problem::ProblemDoc;
use crate::model::conclude::Limited;
use crate::model::limits::{Closed, LimitName};
use crate::model::moment::Moment;

/// The limit that a refusal is about; nothing when it is about none.
pub fn limited(e: &AcmeError) -> Option<Limited> {
    if !e.is_rate_limited() {
        return None;
    }
    let words = e.problem.as_ref().map(words).unwrap_or_default();
    let said = words.to_lowercase();
    let has = |all: &[&str]| all.iter().all(|one| said.contains(one));
    let (limit, closed) = if has(&["temporarily prevented"]) || has(&["paused"]) {
        (LimitName::FailuresInARow, Closed::Paused)
    } else if has(&["failed authorizations"]) || has(&["failed validations"]) {
        (LimitName::FailuresPerName, Closed::Others)
    } else if has(&["exact set"]) || has(&["duplicate certificate"]) {
        (LimitName::CertificatesPerName, Closed::Others)
    } else if has(&["certificates", "already issued"]) {
        (LimitName::CertificatesPerDomain, Closed::Others)
    } else {
        // New orders, a busy service, words nobody knows: the whole account waits.
        (LimitName::OrdersPerAccount, Closed::Others)
    };
    Some(Limited { limit, closed, link: link(&words) })
}

/// All that a problem says, its parts included.
fn words(problem: &ProblemDoc) -> String {
    let parts = problem.subproblems().map(|part| part.detail().to_owned());
    std::iter::once(problem.detail().to_owned()).chain(parts).collect::<Vec<_>>().join(" ")
}

/// The first address in the words, as far as it is one: `https` and printable ASCII.
fn link(words: &str) -> Option<String> {
    let from = &words[words.find("https://")?..];
    let url: String = from.chars().take_while(|c| c.is_ascii_graphic() && !"\"'<>`\\".contains(*c)).take(2_000).collect();
    let url = url.trim_end_matches(['.', ',', ')', ':', ';']);
    (url.len() > "https://".len()).then(|| url.to_owned())
}

/// When the words say to come back: `... retry after 2026-11-30 05:12:00 UTC`.
pub(super) fn told_in_words(problem: &ProblemDoc) -> Option<Moment> {
    let words = words(problem);
    let rest = words.split("retry after ").nth(1)?;
    let format = format_description!("[year]-[month]-[day] [hour]:[minute]:[second]");
    let at = time::PrimitiveDateTime::parse(rest.get(..19)?, &format).ok()?;
    let at: OffsetDateTime = rest.get(19..)?.starts_with(" UTC").then(|| at.assume_utc())?;
    Some(Moment::from_secs(at.unix_timestamp()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::acme::{Call, Kind};

    fn refusal(detail: &str) -> AcmeError {
        let problem = json!({"type": "urn:ietf:params:acme:error:rateLimited", "detail": detail, "status": 429});
        AcmeError {
            call: Call::NewOrder,
            kind: Kind::Refused,
            problem: ProblemDoc::new(problem),
            status: Some(429),
            retry_after: None,
            acted_on: false,
            cause: None,
        }
    }

    #[test]
    fn lets_encrypts_words_are_told_apart() {
        let docs = "see https://letsencrypt.org/docs/rate-limits/";
        for (detail, limit, closed, link) in [
            (
                format!("too many new orders (300) from this account in the last 3h0m0s, retry after 2026-11-30 05:12:00 UTC: {docs}#new-orders-per-account"),
                LimitName::OrdersPerAccount,
                Closed::Others,
                Some("https://letsencrypt.org/docs/rate-limits/#new-orders-per-account"),
            ),
            (
                format!("too many certificates (50) already issued for \"acme.co.uk\" in the last 168h0m0s, retry after 2026-12-01 00:00:00 UTC: {docs}."),
                LimitName::CertificatesPerDomain,
                Closed::Others,
                Some("https://letsencrypt.org/docs/rate-limits/"),
            ),
            (
                "too many certificates (5) already issued for this exact set of identifiers in the last 168h0m0s, retry after x".to_owned(),
                LimitName::CertificatesPerName,
                Closed::Others,
                None,
            ),
            (
                "too many failed authorizations (5) for \"a.acme.com\" in the last 1h0m0s, retry after x".to_owned(),
                LimitName::FailuresPerName,
                Closed::Others,
                None,
            ),
            (
                "Your account is temporarily prevented from requesting certificates for a.acme.com and possibly others. Please visit: https://portal.letsencrypt.org/sfe/v1/unpause?jwt=ab.cd-_e".to_owned(),
                LimitName::FailuresInARow,
                Closed::Paused,
                Some("https://portal.letsencrypt.org/sfe/v1/unpause?jwt=ab.cd-_e"),
            ),
            ("Service busy; retry later.".to_owned(), LimitName::OrdersPerAccount, Closed::Others, None),
            (String::new(), LimitName::OrdersPerAccount, Closed::Others, None),
        ] {
            let got = limited(&refusal(&detail)).unwrap();
            assert_eq!((got.limit, got.closed, got.link.as_deref()), (limit, closed, link), "{detail}");
        }
    }

    #[test]
    fn the_part_of_one_name_speaks_where_the_whole_does_not() {
        let mut e = refusal("Error creating new order");
        e.problem = ProblemDoc::new(json!({
            "type": "urn:ietf:params:acme:error:rateLimited", "detail": "Error creating new order",
            "subproblems": [{"type": "urn:ietf:params:acme:error:rateLimited",
                "detail": "too many failed authorizations (5) for \"a.test\"", "identifier": {"type": "dns", "value": "a.test"}}],
        }));
        assert_eq!(limited(&e).unwrap().limit, LimitName::FailuresPerName);
        e.problem = None;
        assert_eq!(limited(&e).unwrap().limit, LimitName::OrdersPerAccount, "a bare 429 is everybody's");
        e.status = Some(503);
        assert_eq!(limited(&e), None, "a CA that is down limits nobody");
    }

    #[test]
    fn a_time_in_the_words_is_read() {
        let at = |detail: &str| told_in_words(refusal(detail).problem.as_ref().unwrap()).map(Moment::rfc3339);
        assert_eq!(at("x, retry after 2026-11-30 05:12:07 UTC: see").as_deref(), Some("2026-11-30T05:12:07Z"));
        for none in
            ["retry after soon", "retry after 2026-11-30 05:12:07", "retry after 2026-13-40 99:12:07 UTC", "retry after ü"]
        {
            assert_eq!(at(none), None, "{none}");
        }
    }

    proptest! {
        #[test]
        fn any_words_are_survived(detail in ".{0,120}") {
            let e = refusal(&detail);
            let got = limited(&e).unwrap();
            prop_assert!(got.link.is_none_or(|l| l.starts_with("https://") && l.is_ascii() && !l.contains(char::is_whitespace)));
            let _ = told_in_words(e.problem.as_ref().unwrap());
        }
    }
}
