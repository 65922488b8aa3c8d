//! What people paste when they add domains: one a line, with commas, blanks, as URLs, twice.

use crate::model::hostname::{Hostname, HostnameError, NameRules};

/// One name out of a paste.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::web) struct Pasted {
    /// As it was typed.
    pub(in crate::web) typed: String,
    /// What it means.
    pub(in crate::web) read: Result<Hostname, HostnameError>,
}

/// More names than anybody types; for more there is the API.
pub(in crate::web) const MOST: usize = 100;

/// Dressed names whose meaning is beyond doubt.
const PLAIN_ENOUGH: [&str; 3] = ["hostname_is_url", "hostname_has_path", "hostname_has_port"];

/// The names of a text in their order, each once, and the rest of the text where there are more than [`MOST`].
pub(in crate::web) fn read(text: &str, rules: &NameRules) -> (Vec<Pasted>, Vec<String>) {
    let separators = |c: char| c.is_whitespace() || c == ',' || c == ';';
    let mut words: Vec<&str> = Vec::new();
    for word in text.split(separators).filter(|word| !word.is_empty()) {
        if !words.contains(&word) {
            words.push(word);
        }
        if words.len() > MOST * 20 {
            break;
        }
    }
    let rest = words.split_off(words.len().min(MOST)).into_iter().map(str::to_owned).collect();
    let mut out: Vec<Pasted> = Vec::new();
    for word in words {
        let read = parse(word, rules);
        // The same name in two spellings is one.
        let twice = read.as_ref().is_ok_and(|name| out.iter().any(|other| other.read.as_ref() == Ok(name)));
        if !twice {
            out.push(Pasted { typed: word.to_owned(), read });
        }
    }
    (out, rest)
}

fn parse(word: &str, rules: &NameRules) -> Result<Hostname, HostnameError> {
    Hostname::parse(word, rules).or_else(|refusal| match &refusal.suggestion {
        Some(meant) if PLAIN_ENOUGH.contains(&refusal.code) => Hostname::parse(meant, rules).map_err(|_| refusal),
        _ => Err(refusal),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(text: &str) -> Vec<String> {
        let one = |p: &Pasted| p.read.as_ref().map_or_else(|e| format!("{}!", e.code), ToString::to_string);
        read(text, &NameRules::default()).0.iter().map(one).collect()
    }

    #[test]
    fn a_paste_is_read_name_by_name() {
        assert_eq!(
            names("shop.acme.com, https://Blog.acme.com/x?y ;docs.acme.com:8443\r\n\n\tshop.acme.com SHOP.acme.com."),
            ["shop.acme.com", "blog.acme.com", "docs.acme.com"]
        );
        assert_eq!(
            names("*.acme.com 192.0.2.1 bücher.example.com"),
            ["hostname_wildcard!", "hostname_is_ip!", "xn--bcher-kva.example.com"]
        );
        assert_eq!(names(" ,;\n"), Vec::<String>::new());
        let many: String = (0..150).map(|n| format!("h{n}.acme.com\n")).collect();
        let (first, rest) = read(&many, &NameRules::default());
        assert_eq!((first.len(), rest.len(), rest[0].as_str()), (100, 50, "h100.acme.com"));
    }

    proptest! {
        #[test]
        fn nothing_that_was_typed_is_lost(text in "[a-z.*@:/, ;\n\u{202e}\0é]{0,200}") {
            let (first, rest) = read(&text, &NameRules::default());
            for word in text.split(|c: char| c.is_whitespace() || c == ',' || c == ';').filter(|word| !word.is_empty()) {
                let read = parse(word, &NameRules::default());
                let kept = first.iter().any(|p| p.typed == word || (read.is_ok() && p.read == read));
                prop_assert!(kept || rest.iter().any(|r| r == word), "{:?}", word);
            }
        }
    }
}
