//! Look-ups that end badly, on purpose.

use crate::model::look::{Kind, name};

/// How it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Server failure.
    ServFail,
    /// Silence.
    Timeout,
    /// Every delegated server refuses.
    Refused,
    /// The parent zone says that the name does not exist.
    NxDomain,
    /// The servers do not know the type.
    NotImp,
    /// DNSSEC validation fails at a validating resolver; the servers themselves answer.
    Bogus,
    /// The same, at resolvers that do not say why they fail.
    BogusUnexplained,
    /// The answer is cut and TCP does not work.
    Truncated,
}

impl How {
    /// From its word in capitals.
    pub fn named(word: &str) -> Option<How> {
        Some(match word {
            "SERVFAIL" => How::ServFail,
            "TIMEOUT" => How::Timeout,
            "REFUSED" => How::Refused,
            "NXDOMAIN" => How::NxDomain,
            "NOTIMP" => How::NotImp,
            "BOGUS" => How::Bogus,
            "BOGUS_UNEXPLAINED" => How::BogusUnexplained,
            "TRUNCATED" => How::Truncated,
            _ => return None,
        })
    }
}

/// Which look-ups end how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The name.
    pub name: String,
    /// The type; none for all.
    pub kind: Option<Kind>,
    /// How it ends.
    pub how: How,
    /// Whether names beneath are hit too.
    pub below: bool,
}

impl Fault {
    /// Whether it hits a question.
    pub fn hits(&self, asked: &str, kind: Kind) -> bool {
        let there = if self.below { name::within(asked, &self.name) } else { asked == self.name };
        there && self.kind.is_none_or(|k| k == kind)
    }
}
