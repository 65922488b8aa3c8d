//! Extended errors (RFC 8914) in words.

/// Says that no server of the zone could be reached; the resolver was not stopped by a signature.
const NO_REACHABLE_AUTHORITY: u16 = 22;
/// Says that the network failed.
const NETWORK_ERROR: u16 = 23;

/// Whether the code says that validation failed.
pub const fn is_bogus(code: u16) -> bool {
    matches!(code, 6..=12 | 25)
}

/// Whether the code says that something else than validation failed.
pub const fn is_unreachable(code: u16) -> bool {
    matches!(code, NO_REACHABLE_AUTHORITY | NETWORK_ERROR)
}

/// What a code means; none for codes that say nothing more.
pub const fn meaning(code: u16) -> Option<&'static str> {
    Some(match code {
        1 => "its signatures use an algorithm the resolver does not know",
        2 => "its DS record uses a digest the resolver does not know",
        3 | 19 => "an old answer, kept because no new one came",
        4 | 17 => "the answer was changed by a filter",
        5 => "its signatures could not be checked",
        6 => "its signatures do not fit",
        7 => "its signatures have expired",
        8 | 25 => "its signatures are not valid at this time",
        9 => "none of its keys is the one that its registrar vouches for",
        10 => "signatures are missing",
        11 => "none of its keys may sign a zone",
        12 => "the proof that there is no such record is missing",
        13 => "a failure remembered from before",
        14 => "the server is not ready",
        15 | 16 => "blocked at the resolver",
        18 => "we may not ask that resolver",
        20 => "the server does not speak for the zone",
        21 => "not supported",
        NO_REACHABLE_AUTHORITY => "none of its name servers could be reached",
        NETWORK_ERROR => "the network failed",
        24 => "its name servers gave invalid data",
        27 => "its proofs of absence ask for more work than resolvers do",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_code_is_both_a_broken_signature_and_an_unreachable_server_and_all_of_either_are_worded() {
        for code in 0..=u16::MAX {
            assert!(!(is_bogus(code) && is_unreachable(code)), "{code}");
            assert!(!(is_bogus(code) || is_unreachable(code)) || meaning(code).is_some(), "{code}");
        }
    }
}
