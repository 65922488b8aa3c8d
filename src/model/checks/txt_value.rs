//! TXT values: how one record's strings become a value, how two values compare, and how one is shown.

use crate::model::look::{Data, quoted};

/// The value of one TXT record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// To compare: the strings joined; what is not UTF-8 is replaced.
    pub value: String,
    /// To show: every octet that is not plain is escaped.
    pub shown: String,
}

impl Text {
    /// That of a TXT record; none for other records.
    pub fn of(data: &Data) -> Option<Text> {
        match data {
            Data::Txt(strings) => Some(Text { value: joined(strings), shown: quoted(&strings.concat()) }),
            _ => None,
        }
    }
}

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

    #[test]
    fn what_is_shown_is_plain() {
        let text = Text::of(&Data::Txt(vec![b"<b>\"\xff\0".to_vec(), "\u{202e}x".as_bytes().to_vec()])).unwrap();
        assert_eq!(text.shown, r#"<b>\"\255\000\226\128\174x"#);
    }

    proptest::proptest! {
        #[test]
        fn any_octets_are_shown_as_plain_ascii_and_none_is_lost(
            strings in proptest::collection::vec(proptest::collection::vec(proptest::num::u8::ANY, 0..60), 0..4),
        ) {
            let text = Text::of(&Data::Txt(strings.clone())).unwrap();
            proptest::prop_assert!(text.shown.bytes().all(|b| (0x20..=0x7e).contains(&b)));
            let mut octets = Vec::new();
            let mut bytes = text.shown.bytes();
            while let Some(b) = bytes.next() {
                octets.push(if b == b'\\' { crate::model::look::name::escaped(&mut bytes).unwrap() } else { b });
            }
            proptest::prop_assert_eq!(octets, strings.concat());
        }

        #[test]
        fn padding_and_quotes_never_change_the_value(v in "[a-z0-9=-]{1,60}", pad in "[ \t]{0,4}", quote in proptest::bool::ANY) {
            let dressed = if quote { format!("{pad}\"{v}\"{pad}") } else { format!("{pad}{v}{pad}") };
            proptest::prop_assert_eq!(normalised(&dressed.to_ascii_uppercase()), v);
        }
    }
}
