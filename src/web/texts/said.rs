//! A sentence with values in it.

use std::fmt;

use askama::filters::{Html, HtmlSafe, escape};

/// A text with its values; shown, it is HTML.
pub(in crate::web) struct Said {
    text: &'static str,
    values: Vec<(&'static str, String)>,
}

/// A piece of a text.
enum Piece<'a> {
    Plain(&'a str),
    Value(&'a str),
    Strong,
    Code,
}

impl Said {
    pub(super) fn new(text: &'static str, values: Vec<(&'static str, String)>) -> Said {
        Said { text, values }
    }

    /// Without markup, for attributes and titles.
    pub(in crate::web) fn plain(&self) -> String {
        let mut out = String::new();
        self.each(|piece| match piece {
            Piece::Plain(text) | Piece::Value(text) => out.push_str(text),
            Piece::Strong | Piece::Code => {}
        });
        out
    }

    fn each(&self, mut take: impl FnMut(Piece<'_>)) {
        let mut rest = self.text;
        while let Some(at) = rest.find(['*', '`', '{']) {
            if at > 0 {
                take(Piece::Plain(&rest[..at]));
            }
            let mark = rest.as_bytes()[at];
            rest = &rest[at + 1..];
            match mark {
                b'*' => take(Piece::Strong),
                b'`' => take(Piece::Code),
                _ => {
                    let (name, after) = rest.split_once('}').unwrap_or((rest, ""));
                    rest = after;
                    // That each name has a value is seen to where texts are listed.
                    let value = self.values.iter().find(|(other, _)| *other == name);
                    take(Piece::Value(value.map_or("", |(_, value)| value)));
                }
            }
        }
        if !rest.is_empty() {
            take(Piece::Plain(rest));
        }
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut strong, mut code) = (false, false);
        let mut done = Ok(());
        self.each(|piece| {
            let written = match piece {
                Piece::Strong => tag(f, &mut strong, "strong"),
                Piece::Code => tag(f, &mut code, "code"),
                Piece::Plain(text) => escaped(f, text),
                // What is ASCII turns nothing around.
                Piece::Value(value) if value.is_ascii() => escaped(f, value),
                Piece::Value(value) => {
                    f.write_str("<bdi>").and_then(|()| escaped(f, value)).and_then(|()| f.write_str("</bdi>"))
                }
            };
            done = done.and(written);
        });
        done
    }
}

fn tag(f: &mut fmt::Formatter<'_>, open: &mut bool, name: &str) -> fmt::Result {
    *open = !*open;
    if *open { write!(f, "<{name}>") } else { write!(f, "</{name}>") }
}

fn escaped(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    match escape(text, Html) {
        Ok(safe) => write!(f, "{safe}"),
        Err(never) => match never {},
    }
}

impl HtmlSafe for Said {}
