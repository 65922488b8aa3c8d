//! Records as lines of a zone file (RFC 1035 §5.1), which BIND and its kin load as they stand.
//!
//! What always holds: one record is one line, whatever its value holds. A text is quoted, cut into strings of at most 255 octets
//! (§3.3.14), and every octet that is not plain is written as `\DDD`; a name has its odd octets escaped. What no zone file may
//! hold becomes a comment.

use std::fmt::Write as _;
use std::net::IpAddr;

use super::evidence::Record;

/// How long answers may be kept that are made from these lines: short, so that a slip is soon mended.
const TTL: u32 = 300;
/// The most octets of one string of a TXT record.
const STRING: usize = 255;

/// One record as one line.
pub fn line(record: &Record) -> String {
    let rdata = match record.kind.as_str() {
        "TXT" => strings(record.value.as_bytes()),
        "CNAME" | "ALIAS" => name(&record.value),
        "CAA" => plain(&record.value),
        kind => match (kind, record.value.parse::<IpAddr>()) {
            ("A", Ok(IpAddr::V4(address))) => address.to_string(),
            ("AAAA", Ok(IpAddr::V6(address))) => address.to_string(),
            _ => plain(&record.value),
        },
    };
    format!("{} {TTL} IN {} {rdata}", name(&record.name), plain(&record.kind))
}

/// Records as a file, after comments of which each is a line. What is no type of a zone file stands there as a comment.
pub fn document<'a>(records: impl IntoIterator<Item = &'a Record>, comments: &[&str]) -> String {
    let mut out = String::new();
    for comment in comments {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "; {}", plain(comment));
    }
    for record in records {
        let loads = matches!(record.kind.as_str(), "TXT" | "CNAME" | "A" | "AAAA" | "CAA");
        let _ = writeln!(out, "{}{}", if loads { "" } else { "; " }, line(record));
    }
    out
}

/// A whole name, with its final dot.
fn name(text: &str) -> String {
    let mut out = String::new();
    for octet in text.trim_end_matches('.').bytes() {
        match octet {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'*' => out.push(char::from(octet)),
            _ => drop(write!(out, "\\{octet:03}")),
        }
    }
    out.push('.');
    out
}

/// The strings of a TXT record, each in its quotes.
fn strings(octets: &[u8]) -> String {
    if octets.is_empty() {
        return "\"\"".to_owned();
    }
    let quoted = |string: &[u8]| {
        let mut out = String::from("\"");
        for &octet in string {
            match octet {
                b'"' | b'\\' => {
                    out.push('\\');
                    out.push(char::from(octet));
                }
                0x20..=0x7e => out.push(char::from(octet)),
                _ => drop(write!(out, "\\{octet:03}")),
            }
        }
        out.push('"');
        out
    };
    octets.chunks(STRING).map(quoted).collect::<Vec<_>>().join(" ")
}

/// Text without anything that ends a line or hides: our own values pass as they are.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_graphic() || c == ' ' { c } else { '?' }).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record(name: &str, kind: &str, value: &str) -> Record {
        Record { name: name.into(), host: String::new(), kind: kind.into(), value: value.into(), keep: true }
    }

    #[test]
    fn each_type_is_written_as_zone_files_have_it() {
        for (kind, value, end) in [
            ("TXT", "v=1", "TXT \"v=1\""),
            ("TXT", "a\"b\\c\nd", "TXT \"a\\\"b\\\\c\\010d\""),
            ("CNAME", "acme.app.example", "CNAME acme.app.example."),
            ("CNAME", "acme.app.example.", "CNAME acme.app.example."),
            ("A", "192.0.2.1", "A 192.0.2.1"),
            ("AAAA", "2001:db8::1", "AAAA 2001:db8::1"),
            ("CAA", "0 issue \"ca.example\"", "CAA 0 issue \"ca.example\""),
        ] {
            assert_eq!(line(&record("a.example", kind, value)), format!("a.example. 300 IN {end}"));
        }
        let long = line(&record("a.example", "TXT", &"x".repeat(300)));
        assert_eq!(long, format!("a.example. 300 IN TXT \"{}\" \"{}\"", "x".repeat(255), "x".repeat(45)));
    }

    #[test]
    fn what_a_zone_file_does_not_know_is_a_comment() {
        let all = [record("acme.example", "ALIAS", "app.example"), record("b.example", "A", "192.0.2.1")];
        let file = document(&all, &["For acme\n@ IN NS evil.example."]);
        assert_eq!(
            file,
            "; For acme?@ IN NS evil.example.\n; acme.example. 300 IN ALIAS app.example.\nb.example. 300 IN A 192.0.2.1\n"
        );
    }

    proptest! {
        #[test]
        fn one_record_is_one_line_whatever_it_holds(name in ".{0,40}", value in "\\PC{0,20}.{0,300}", n in 0_usize..6) {
            let kind = ["TXT", "CNAME", "A", "AAAA", "CAA", "ALIAS"][n];
            let line = line(&record(&name, kind, &value));
            prop_assert!(line.bytes().all(|b| (0x20..0x7f).contains(&b)), "{:?}", line);
            // A comment begins outside of quotes only where a value is ours as it stands.
            if kind == "TXT" {
                let (_, text) = line.split_once(" TXT ").unwrap();
                prop_assert!(text.starts_with('"') && text.ends_with('"'));
            }
        }
    }
}
