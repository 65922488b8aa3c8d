//! TXT values: how one record's strings become a value, and how two values compare.

/// The value of one TXT record: its strings joined with nothing between (RFC 1035 §3.3.14). Strings of different records are
/// never joined.
pub fn joined(strings: &[Vec<u8>]) -> String {
    String::from_utf8_lossy(&strings.concat()).into_owned()
}

/// The form in which values compare: outer ASCII white space off, then one outer pair of quotes, then ASCII lower case.
pub fn normalised(value: &str) -> String {
    let trimmed = value.trim_matches(|c: char| c.is_ascii_whitespace());
    let inner = trimmed.strip_prefix('"').and_then(|v| v.strip_suffix('"')).unwrap_or(trimmed);
    inner.to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panels_may_quote_pad_and_capitalise_but_nothing_more() {
        for same in ["tok", "\"tok\"", " tok\t", "TOK", " \"Tok\" ", "tok\n"] {
            assert_eq!(normalised(same), "tok", "{same:?}");
        }
        for other in ["t ok", "\"\"tok\"\"", "'tok'", "tok.", "\" tok\"", "\""] {
            assert_ne!(normalised(other), "tok", "{other:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn padding_and_quotes_never_change_the_value(v in "[a-z0-9=-]{1,60}", pad in "[ \t]{0,4}", quote in proptest::bool::ANY) {
            let dressed = if quote { format!("{pad}\"{v}\"{pad}") } else { format!("{pad}{v}{pad}") };
            proptest::prop_assert_eq!(normalised(&dressed.to_ascii_uppercase()), v);
        }
    }
}
