//! Lower-case hex, for key ids.

pub(super) fn encode(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Exactly `N` bytes from hex digits of either case; `None` for anything else.
pub(super) fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != N * 2 {
        return None;
    }
    let value = |digit: u8| char::from(digit).to_digit(16).and_then(|v| u8::try_from(v).ok());
    let mut out = [0; N];
    for (byte, pair) in out.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = value(pair[0])? << 4 | value(pair[1])?;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_reads_back_and_junk_is_refused(bytes: [u8; 16], junk in ".{0,40}") {
            prop_assert_eq!(decode::<16>(&encode(&bytes)), Some(bytes));
            if let Some(read) = decode::<16>(&junk) {
                prop_assert_eq!(encode(&read), junk.to_ascii_lowercase());
            }
        }
    }
}
