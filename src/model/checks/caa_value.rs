//! The value of an `issue` or `issuewild` property, as Let's Encrypt's software reads it (RFC 8659 §4.2 with its stricter spots).

/// What such a value says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IssueValue {
    /// Outside the grammar, or outside what the CA reads: counts as "nobody may". With the reason.
    Malformed(String),
    /// The empty issuer: nobody may.
    Nobody,
    /// One CA may, under the parameters.
    Issuer {
        /// The CA's name as it stands there.
        domain: String,
        /// The parameters in their order; names as they stand there.
        parameters: Vec<(String, String)>,
    },
}

fn blank(c: char) -> bool {
    matches!(c, ' ' | '\t')
}

/// Reads a value.
pub fn parse(value: &[u8]) -> IssueValue {
    let Ok(text) = std::str::from_utf8(value) else {
        return IssueValue::Malformed("it holds octets that are no text".to_owned());
    };
    let mut parts = text.split(';');
    let domain = parts.next().unwrap_or_default().trim_matches(blank);
    let parts: Vec<&str> = parts.collect();
    if !domain.is_empty() && !domain.split('.').all(is_label) {
        return IssueValue::Malformed(format!("{domain:?} is no domain name"));
    }
    let mut parameters = Vec::new();
    // A lone semicolon after the domain is allowed; one after the last parameter is not.
    let nothing_follows = parts.iter().all(|p| p.trim_matches(blank).is_empty()) && parts.len() <= 1;
    for part in parts.iter().filter(|_| !nothing_follows) {
        match parameter(part) {
            Ok(p) => parameters.push(p),
            Err(why) => return IssueValue::Malformed(why),
        }
    }
    if domain.is_empty() {
        return IssueValue::Nobody;
    }
    IssueValue::Issuer { domain: domain.to_owned(), parameters }
}

/// `label = (ALPHA / DIGIT) *( *("-") (ALPHA / DIGIT))`
fn is_label(label: &str) -> bool {
    !label.is_empty()
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

fn parameter(part: &str) -> Result<(String, String), String> {
    let Some((tag, value)) = part.split_once('=') else {
        return Err(match part.trim_matches(blank) {
            "" => "a semicolon has no parameter after it".to_owned(),
            p => format!("{p:?} is not of the form name=value"),
        });
    };
    let (tag, value) = (tag.trim_matches(blank), value.trim_matches(blank));
    if tag.is_empty() || !tag.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return Err(format!("the parameter name {tag:?} has characters other than letters and digits"));
    }
    // value = *(%x21-3A / %x3C-7E); a semicolon cannot occur after the split.
    if !value.bytes().all(|b| (0x21..=0x7e).contains(&b)) {
        return Err(format!("the parameter value {value:?} has a character that is not allowed"));
    }
    Ok((tag.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::IssueValue::{Issuer, Malformed, Nobody};
    use super::*;

    fn issuer(domain: &str, parameters: &[(&str, &str)]) -> IssueValue {
        let parameters = parameters.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Issuer { domain: domain.to_owned(), parameters }
    }

    #[test]
    fn b22_empty_malformed_and_permitting_values() {
        assert_eq!(parse(b";"), Nobody);
        assert_eq!(parse(b""), Nobody);
        assert_eq!(parse(b"  "), Nobody);
        assert!(matches!(parse(b"%%%"), Malformed(_)));
        assert!(matches!(parse(b"\"ca.example\""), Malformed(_)));
        assert_eq!(parse(b"ca.example"), issuer("ca.example", &[]));
        assert_eq!(parse(b" ca.example ; "), issuer("ca.example", &[]));
    }

    #[test]
    fn parameters_are_read_as_the_ca_reads_them() {
        assert_eq!(parse(b"ca.example; a=1;b = x=y "), issuer("ca.example", &[("a", "1"), ("b", "x=y")]));
        for bad in [
            "ca.example; a=1;",
            "ca.example; policy-id=7",
            "ca.example; a",
            "ca.example;;",
            "ca.example; a=b c",
            "-ca.example",
        ] {
            assert!(matches!(parse(bad.as_bytes()), Malformed(_)), "{bad}");
        }
        assert!(matches!(parse(&[0xff, b'a']), Malformed(_)));
    }

    proptest::proptest! {
        #[test]
        fn any_octets_are_read_without_panic(value in proptest::collection::vec(proptest::num::u8::ANY, 0..300)) {
            let _ = parse(&value);
        }

        #[test]
        fn what_fits_the_grammar_is_read_back(domain in "[a-z0-9]{1,8}(\\.[a-z0-9]{1,8}){0,3}",
                                              params in proptest::collection::vec(("[a-zA-Z0-9]{1,8}", "[!-:<-~]{0,20}"), 0..4),
                                              pad in "[ \t]{0,3}") {
            let mut text = format!("{pad}{domain}{pad}");
            for (k, v) in &params {
                text.push_str(&format!(";{pad}{k}{pad}={pad}{v}{pad}"));
            }
            proptest::prop_assert_eq!(parse(text.as_bytes()), Issuer { domain, parameters: params });
        }
    }
}
