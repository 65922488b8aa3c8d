//! What is kept, and shown to whoever owns a place, of a try that failed. It says what to look at, and nothing of where names lead
//! inside somebody's network, or of what a receiver's answer held.

use crate::model::hook_url::HookUrlError;
use crate::reach::ReachError;

/// Why a request was not taken.
#[derive(Debug)]
pub(super) enum Failure {
    /// The URL is not asked any more: the rules have become stricter since it was added.
    Url(HookUrlError),
    /// Its name leads nowhere.
    NoAddress,
    /// It was sent, or not, and no answer came.
    Reach(ReachError),
    /// It answered with something else than 2xx.
    Answered(u16),
}

impl Failure {
    /// The status, where there was an answer.
    pub(super) fn status(&self) -> Option<u16> {
        match self {
            Failure::Answered(status) => Some(*status),
            _ => None,
        }
    }

    /// Whether the receiver may have got the request all the same.
    pub(super) fn may_have_arrived(&self) -> bool {
        match self {
            Failure::Reach(e) => e.may_have_arrived(),
            Failure::Url(_) | Failure::NoAddress | Failure::Answered(_) => false,
        }
    }

    /// In words for the owner of the place.
    pub(super) fn said(&self) -> String {
        match self {
            Failure::Url(e) => e.to_string(),
            Failure::NoAddress => "its name has no address".to_owned(),
            Failure::Answered(status @ 300..=399) => format!("it answered {status}; redirects are not followed"),
            Failure::Answered(status) => format!("it answered {status}"),
            Failure::Reach(e) => match e {
                ReachError::Refused(_) => {
                    "its name leads to an address that is not of the public Internet; nothing was sent".to_owned()
                }
                ReachError::Connect(e) => match e.kind() {
                    std::io::ErrorKind::ConnectionRefused => "it refused the connection".to_owned(),
                    std::io::ErrorKind::TimedOut => "no connection came about in time".to_owned(),
                    _ => "no connection could be made".to_owned(),
                },
                ReachError::Tls(_) => {
                    "TLS could not be agreed on: its certificate must be valid, for its name, and of a public authority"
                        .to_owned()
                }
                ReachError::Http(_) => "it did not answer in HTTP, or hung up".to_owned(),
                ReachError::TimedOut(after) => format!("it did not answer within {} s", after.as_secs()),
                ReachError::Setup(_) | ReachError::Request(_) | ReachError::Certificate => {
                    "the request could not be made".to_owned()
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Error, ErrorKind};
    use std::time::Duration;

    use super::*;
    use crate::reach::address::judge;

    #[test]
    fn nothing_inside_is_told_to_the_owner() {
        let inside = judge("10.20.30.40".parse().unwrap(), false).unwrap_err();
        let all = [
            Failure::Reach(ReachError::Refused(inside)),
            Failure::Reach(ReachError::Connect(Error::other("10.20.30.40:443: no route"))),
            Failure::Reach(ReachError::Connect(Error::from(ErrorKind::ConnectionRefused))),
            Failure::Reach(ReachError::Tls(Error::other("certificate is for 10.20.30.40"))),
            Failure::Reach(ReachError::TimedOut(Duration::from_secs(15))),
            Failure::NoAddress,
            Failure::Answered(307),
            Failure::Answered(500),
        ];
        let mut seen = std::collections::BTreeSet::new();
        for failure in all {
            let said = failure.said();
            assert!(!said.contains("10.20") && said.len() < 200, "{said}");
            assert!(seen.insert(said), "{failure:?} is told like another");
        }
    }

    #[test]
    fn only_what_was_sent_can_have_arrived() {
        let arrived = |e| Failure::Reach(e).may_have_arrived();
        assert!(arrived(ReachError::TimedOut(Duration::from_secs(15))));
        assert!(!arrived(ReachError::Connect(Error::from(ErrorKind::TimedOut))));
        assert!(!arrived(ReachError::Tls(Error::from(ErrorKind::InvalidData))));
        assert!(!Failure::Answered(500).may_have_arrived() && !Failure::NoAddress.may_have_arrived());
    }
}
