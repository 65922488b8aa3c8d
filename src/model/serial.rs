//! The serial number of a certificate as text: one spelling in the store, on the wire and in what a probe saw, so that they can be
//! compared.

/// No serial number is longer (RFC 5280 §4.1.2.2), with the octet that keeps it positive.
const OCTETS: usize = 21;

/// The content octets as lower-case hex without separators, a leading zero octet included.
pub fn of(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// The same for what somebody else wrote, in either case, with or without colons between the octets; none for what is no serial
/// number.
pub fn read(text: &str) -> Option<String> {
    let digits: String = text.chars().filter(|c| *c != ':').map(|c| c.to_ascii_lowercase()).collect();
    let whole = !digits.is_empty() && digits.len().is_multiple_of(2) && digits.len() <= OCTETS * 2;
    (whole && digits.bytes().all(|b| b.is_ascii_hexdigit())).then_some(digits)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_serial_is_plain_hex_whoever_wrote_it() {
        assert_eq!(of(&[0x00, 0xa7, 0x0c]), "00a70c");
        assert_eq!(read("00:A7:0c").as_deref(), Some("00a70c"));
        for none in ["", ":", "a", "0xa7", "a7 0c", "ä7", &"00".repeat(OCTETS + 1)] {
            assert_eq!(read(none), None, "{none}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(octets in prop::collection::vec(any::<u8>(), 1..=OCTETS)) {
            let plain = of(&octets);
            let colons: Vec<String> = octets.iter().map(|octet| format!("{octet:02X}")).collect();
            prop_assert_eq!(read(&colons.join(":")), Some(plain.clone()));
            prop_assert_eq!(read(&plain), Some(plain));
        }

        #[test]
        fn junk_is_no_serial_and_no_panic(junk in ".{0,60}") {
            if let Some(read) = read(&junk) {
                prop_assert!(read.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)), "{}", read);
            }
        }
    }
}
