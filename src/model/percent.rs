//! Percent-encoding for the parts of a URL.

/// Percent-encodes all but unreserved characters (RFC 3986 §2.3).
pub fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// What was percent-encoded; what is no such code stays as it is.
pub fn decoded(text: &str) -> String {
    let (mut out, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).filter(|_| *first == b'%').and_then(|two| std::str::from_utf8(two).ok());
        let octet =
            code.filter(|two| two.bytes().all(|b| b.is_ascii_hexdigit())).and_then(|two| u8::from_str_radix(two, 16).ok());
        match octet {
            Some(octet) => {
                out.push(octet);
                rest = &after[2..];
            }
            None => {
                out.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_encoded_is_decoded_and_the_rest_stays() {
        for text in ["plain", "s@cr/et", "100% of ä", "%%zz", ""] {
            assert_eq!(decoded(&encoded(text)), text);
        }
        assert_eq!(decoded("50%+%4"), "50%+%4");
    }
}
