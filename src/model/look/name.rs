//! Domain names as text: lower case, no trailing dot, octets that are not plain written as `\DDD` or `\c` (RFC 1035 §5.1).

use std::fmt::Write as _;

/// The canonical text of a name given as labels of octets.
pub fn from_labels<'a>(labels: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut out = String::new();
    for label in labels {
        if !out.is_empty() {
            out.push('.');
        }
        for &b in label {
            match b {
                b'.' | b'\\' => {
                    out.push('\\');
                    out.push(char::from(b));
                }
                0x21..=0x7e => out.push(char::from(b.to_ascii_lowercase())),
                // Writing to a String cannot fail.
                _ => drop(write!(out, "\\{b:03}")),
            }
        }
    }
    out
}

/// The labels of a name in text form; `None` for an escape that is cut off or out of range, or an empty label.
pub fn labels(text: &str) -> Option<Vec<Vec<u8>>> {
    let mut labels = Vec::new();
    let mut label = Vec::new();
    let mut bytes = text.bytes();
    while let Some(b) = bytes.next() {
        match b {
            b'\\' => label.push(escaped(&mut bytes)?),
            b'.' if label.is_empty() => return (labels.is_empty() && text == ".").then(Vec::new),
            b'.' => labels.push(std::mem::take(&mut label)),
            _ => label.push(b),
        }
    }
    if !label.is_empty() {
        labels.push(label);
    }
    let fits = labels.iter().all(|l| l.len() <= 63) && labels.iter().map(|l| l.len() + 1).sum::<usize>() < 255;
    fits.then_some(labels)
}

/// One escape, after its backslash.
pub fn escaped(bytes: &mut impl Iterator<Item = u8>) -> Option<u8> {
    match bytes.next()? {
        d @ b'0'..=b'9' => {
            let digits = [d, bytes.next()?, bytes.next()?];
            std::str::from_utf8(&digits).ok()?.parse().ok()
        }
        c => Some(c),
    }
}

/// The canonical form of any text form; text that is no name comes back lower-cased, so that it never equals a real one.
pub fn canonical(text: &str) -> String {
    match labels(text) {
        Some(l) => from_labels(l.iter().map(Vec::as_slice)),
        None => text.to_ascii_lowercase(),
    }
}

/// The name without its first label; `None` for the root.
pub fn parent(name: &str) -> Option<&str> {
    if name.is_empty() {
        return None;
    }
    let mut escaped = false;
    for (i, b) in name.bytes().enumerate() {
        match b {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'.' => return Some(&name[i + 1..]),
            _ => {}
        }
    }
    Some("")
}

/// The name, its parent, and so on up to and including the top-level domain.
pub fn climb(name: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(name), |n| parent(n)).filter(|n| !n.is_empty())
}

/// Whether `name` is `zone` or lies beneath it. Everything lies beneath the root.
pub fn within(name: &str, zone: &str) -> bool {
    zone.is_empty() || name == zone || name.strip_suffix(zone).is_some_and(|rest| rest.ends_with('.'))
}

/// Whether `name` lies in one of `zones`.
pub fn within_any(name: &str, zones: &[String]) -> bool {
    zones.iter().any(|z| within(name, &canonical(z)))
}

/// What a panel's host field takes: `name` relative to `zone`, `@` for the zone itself.
pub fn host_field(name: &str, zone: &str) -> String {
    match name.strip_suffix(zone) {
        Some("") => "@".to_owned(),
        Some(rest) => rest.trim_end_matches('.').to_owned(),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_climb_and_nest() {
        assert_eq!(climb("a.b.example.com").collect::<Vec<_>>(), ["a.b.example.com", "b.example.com", "example.com", "com"]);
        assert!(within("shop.example.com", "example.com"));
        assert!(!within("badexample.com", "example.com"));
        assert_eq!(canonical("EDGE.Platform.Example."), "edge.platform.example");
        assert_eq!(canonical(r"https\:\/\/edge.platform.example."), "https://edge.platform.example");
        assert_eq!(parent(r"a\.b.example"), Some("example"));
        assert_eq!(host_field("example.com", "example.com"), "@");
        assert_eq!(host_field("_x.shop.example.com", "example.com"), "_x.shop");
    }

    proptest::proptest! {
        #[test]
        fn any_labels_survive_the_text_form(l in proptest::collection::vec(proptest::collection::vec(0u8..=255, 1..8), 0..6)) {
            let lower: Vec<Vec<u8>> = l.iter().map(|x| x.to_ascii_lowercase()).collect();
            let text = from_labels(l.iter().map(Vec::as_slice));
            proptest::prop_assert_eq!(labels(&text), Some(lower));
            proptest::prop_assert_eq!(canonical(&text), text);
        }

        #[test]
        fn any_text_is_read_without_panic(s in ".{0,80}") {
            let c = canonical(&s);
            let _ = (labels(&s), parent(&c), climb(&c).count());
        }
    }
}
