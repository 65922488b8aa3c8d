//! Reads one line of a master file (RFC 1035 §5.1): `owner [ttl] [IN] type data`, names absolute.

use crate::model::look::{Caa, Data, Kind, Rr, Soa, name};

/// The TTL of a line that names none.
const DEFAULT_TTL: u32 = 300;

/// A line that is no record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// Too few fields.
    #[error("the line ends after {after:?}; expected: name, time to live, IN, type, data")]
    Short {
        /// The last field there is.
        after: String,
    },
    /// An unknown type.
    #[error("{0:?} is not a record type this server knows; use A, AAAA, CAA, CNAME, DNAME, HTTPS, MX, NS, SOA or TXT")]
    Type(String),
    /// A name that cannot be one.
    #[error("{0:?} is not a domain name: labels have 1 to 63 characters, the whole name under 255")]
    Name(String),
    /// Data that does not fit the type.
    #[error("{seen:?} does not fit a record of type {kind}: expected {expected}")]
    Data {
        /// The type.
        kind: Kind,
        /// What is there.
        seen: String,
        /// What should be there.
        expected: &'static str,
    },
    /// A quotation mark without its partner, or a backslash at the end.
    #[error("a quoted text or an escape does not end")]
    Unended,
}

/// One field: its text as written (for names and numbers), and its octets with escapes undone (for values).
#[derive(Debug)]
struct Field {
    raw: String,
    octets: Vec<u8>,
}

fn fields(line: &str) -> Result<Vec<Field>, LineError> {
    let mut fields = Vec::new();
    let mut rest = line.bytes().peekable();
    loop {
        while rest.next_if(u8::is_ascii_whitespace).is_some() {}
        let quoted = rest.next_if_eq(&b'"').is_some();
        let mut octets = Vec::new();
        let mut raw = Vec::new();
        loop {
            match rest.peek().copied() {
                None if quoted => return Err(LineError::Unended),
                None => break,
                Some(b'"') if quoted => {
                    rest.next();
                    break;
                }
                Some(b) if !quoted && (b.is_ascii_whitespace() || b == b';') => break,
                Some(b'\\') => {
                    rest.next();
                    let mut taken = Vec::new();
                    let octet = name::escaped(&mut rest.by_ref().inspect(|b| taken.push(*b))).ok_or(LineError::Unended)?;
                    octets.push(octet);
                    raw.push(b'\\');
                    raw.extend(taken);
                }
                Some(b) => {
                    rest.next();
                    octets.push(b);
                    raw.push(b);
                }
            }
        }
        if octets.is_empty() && !quoted {
            // The end, or a comment up to it.
            return Ok(fields);
        }
        fields.push(Field { raw: String::from_utf8_lossy(&raw).into_owned(), octets });
    }
}

fn domain(text: &str) -> Result<String, LineError> {
    let labels = name::labels(text).ok_or_else(|| LineError::Name(text.to_owned()))?;
    Ok(name::from_labels(labels.iter().map(Vec::as_slice)))
}

/// Reads a line.
pub fn parse(line: &str) -> Result<Rr, LineError> {
    let fields = fields(line)?;
    let short = |n: usize| LineError::Short {
        after: fields.get(n.min(fields.len()).saturating_sub(1)).map(|f| f.raw.clone()).unwrap_or_default(),
    };
    let owner = domain(&fields.first().ok_or_else(|| short(0))?.raw)?;
    let mut ttl = DEFAULT_TTL;
    let mut at = 1;
    // TTL and class may stand in either order, or be left out.
    while let Some(field) = fields.get(at).filter(|_| at < 3) {
        if let Ok(seconds) = field.raw.parse() {
            ttl = seconds;
        } else if !field.raw.eq_ignore_ascii_case("IN") {
            break;
        }
        at += 1;
    }
    let word = &fields.get(at).ok_or_else(|| short(at))?.raw;
    let kind = Kind::named(word).ok_or_else(|| LineError::Type(word.clone()))?;
    let rest = &fields[at + 1..];
    if rest.is_empty() {
        return Err(short(at + 1));
    }
    Ok(Rr { name: owner, ttl, data: data(kind, rest)? })
}

fn data(kind: Kind, fields: &[Field]) -> Result<Data, LineError> {
    let bad = |expected| LineError::Data {
        kind,
        seen: fields.iter().map(|f| f.raw.as_str()).collect::<Vec<_>>().join(" "),
        expected,
    };
    let [first, others @ ..] = fields else { return Err(bad("something")) };
    let second = others.first();
    // One value where one belongs: text after it is a mistake somebody wants to hear of.
    let single = |expected| if others.is_empty() { Ok(()) } else { Err(bad(expected)) };
    Ok(match kind {
        Kind::A => {
            single("one IPv4 address")?;
            Data::A(first.raw.parse().map_err(|_| bad("one IPv4 address"))?)
        }
        Kind::Aaaa => {
            single("one IPv6 address")?;
            Data::Aaaa(first.raw.parse().map_err(|_| bad("one IPv6 address"))?)
        }
        Kind::Cname | Kind::Dname | Kind::Ns => {
            single("one name")?;
            let to = domain(&first.raw)?;
            match kind {
                Kind::Cname => Data::Cname(to),
                Kind::Dname => Data::Dname(to),
                _ => Data::Ns(to),
            }
        }
        Kind::Mx | Kind::Https => {
            let expected = "a number and a name";
            let number = first.raw.parse().map_err(|_| bad(expected))?;
            let to = domain(&second.ok_or_else(|| bad(expected))?.raw)?;
            if kind == Kind::Mx { Data::Mx(number, to) } else { Data::Https(number, to) }
        }
        Kind::Caa => {
            let expected = "flags, a tag of letters and digits, and a value";
            let [tag, value] = others else { return Err(bad(expected)) };
            if tag.raw.is_empty() || tag.raw.len() > 15 || !tag.raw.bytes().all(|b| b.is_ascii_alphanumeric()) {
                return Err(bad(expected));
            }
            let flags = first.raw.parse().map_err(|_| bad(expected))?;
            Data::Caa(Caa { flags, tag: tag.raw.clone(), value: value.octets.clone() })
        }
        Kind::Soa => {
            let expected = "two names and five numbers";
            let numbers = others.get(1..6).ok_or_else(|| bad(expected))?;
            let number = |i: usize| numbers[i].raw.parse::<u32>().map_err(|_| bad(expected));
            for middle in 1..4 {
                number(middle)?;
            }
            let mailbox = domain(&second.ok_or_else(|| bad(expected))?.raw)?;
            Data::Soa(Soa { primary: domain(&first.raw)?, mailbox, serial: number(0)?, minimum: number(4)? })
        }
        Kind::Txt => {
            if fields.iter().any(|f| f.octets.len() > 255) {
                return Err(bad("strings of at most 255 octets"));
            }
            Data::Txt(fields.iter().map(|f| f.octets.clone()).collect())
        }
        Kind::Other(_) => return Err(bad("a type this server knows")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_people_paste_are_read() {
        let same = [
            "shop.example.com. 300 IN CNAME edge.platform.example.",
            "Shop.Example.com IN 300 CNAME EDGE.platform.example ; a comment",
            "shop.example.com.\tCNAME\tedge.platform.example.",
        ];
        for line in same {
            assert_eq!(parse(line).unwrap().to_string(), same[0], "{line}");
        }
        let txt = parse(r#"_x.example.com. 60 TXT "one two" three "\"q\"; \052""#).unwrap();
        let Data::Txt(strings) = &txt.data else { panic!("{txt}") };
        assert_eq!(strings, &[b"one two".to_vec(), b"three".to_vec(), b"\"q\"; 4".to_vec()]);
        let url = parse(r"shop.example.com. 300 IN CNAME https\:\/\/edge.platform.example.").unwrap();
        assert_eq!(url.data, Data::Cname("https://edge.platform.example".to_owned()));
        assert_eq!(parse("example.com. CAA 128 issue \";\"").unwrap().data.to_string(), "128 issue \";\"");
    }

    #[test]
    fn what_is_no_record_is_refused_with_the_reason() {
        for (line, part) in [
            ("", "the line ends"),
            ("shop.example.com. 300 IN", "the line ends after \"IN\""),
            ("shop.example.com. 300 IN A", "the line ends after \"A\""),
            ("shop.example.com. 300 IN SPF x", "not a record type"),
            ("shop.example.com. 300 IN A 300.1.1.1", "one IPv4 address"),
            ("shop.example.com. CNAME a b", "one name"),
            ("a..b CNAME c", "not a domain name"),
            ("x TXT \"open", "does not end"),
            ("x. CAA 0 issue", "flags, a tag"),
        ] {
            let error = parse(line).unwrap_err().to_string();
            assert!(error.contains(part), "{line:?}: {error}");
        }
    }

    fn any_data() -> impl proptest::strategy::Strategy<Value = Data> {
        use proptest::prelude::*;
        let host = "[a-z0-9_-]{1,12}(\\.[a-z0-9]{1,12}){0,3}";
        let octets = || proptest::collection::vec(any::<u8>(), 0..40);
        prop_oneof![
            any::<u32>().prop_map(|a| Data::A(a.into())),
            any::<u128>().prop_map(|a| Data::Aaaa(a.into())),
            host.prop_map(Data::Cname),
            host.prop_map(Data::Ns),
            (any::<u16>(), host).prop_map(|(p, h)| Data::Mx(p, h)),
            proptest::collection::vec(octets(), 1..4).prop_map(Data::Txt),
            (any::<u8>(), "[a-zA-Z0-9]{1,15}", octets()).prop_map(|(flags, tag, value)| Data::Caa(Caa {
                flags,
                tag,
                value
            })),
        ]
    }

    proptest::proptest! {
        #[test]
        fn every_record_survives_its_line(owner in "[a-z0-9_*-]{1,12}(\\.[a-z0-9]{1,12}){0,3}", ttl: u32, data in any_data()) {
            let rr = Rr { name: owner, ttl, data };
            proptest::prop_assert_eq!(parse(&rr.to_string()), Ok(rr));
        }

        #[test]
        fn any_text_is_read_without_panic(line in ".{0,120}") {
            let _ = parse(&line);
        }
    }
}
