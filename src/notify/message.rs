//! A message to a person: what happened, in plain words, as text and as HTML, however much it is.

use std::fmt::Write as _;

use crate::model::moment::Moment;

/// More than so many things are counted, not listed.
pub const LISTED: usize = 25;
/// Characters of a subject.
const SUBJECT: usize = 120;
/// Characters of one thing.
const LINE: usize = 600;

/// Something that happened.
#[derive(Clone, Debug)]
pub struct Item {
    /// Which name it is about.
    pub hostname: Option<String>,
    /// What, as a sentence.
    pub said: String,
    /// When.
    pub at: Moment,
}

/// A message, addressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// To whom.
    pub to: String,
    /// The same for the same things, so that one that came twice is known.
    pub id: String,
    /// When it was written.
    pub at: Moment,
    /// One short line.
    pub subject: String,
    /// As plain text.
    pub text: String,
    /// As HTML.
    pub html: String,
}

/// Whatever could end a line, turn its direction or is not seen, as a blank.
fn one_line(text: &str, most: usize) -> String {
    let shown = |c: char| {
        if c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
        {
            ' '
        } else {
            c
        }
    };
    let cleaned: String = text.chars().map(shown).collect();
    let words: Vec<&str> = cleaned.split_whitespace().collect();
    let line = words.join(" ");
    if line.chars().count() <= most { line } else { line.chars().take(most - 1).chain(['…']).collect() }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#39;")
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// Words a message. `items` is never empty; `why` says why the reader gets it.
pub fn compose(to: &str, brand: &str, id: String, at: Moment, items: &[Item], link: Option<&str>, why: &str) -> Message {
    let brand = one_line(brand, 60);
    let line = |item: &Item| {
        let said = one_line(&item.said, LINE);
        match &item.hostname {
            // What was said names it already, more often than not.
            Some(name) if !said.contains(name.as_str()) => format!("{}: {said}", one_line(name, 253)),
            _ => capital(&said),
        }
    };
    let lines: Vec<(String, String)> = items.iter().take(LISTED).map(|item| (line(item), item.at.in_words())).collect();
    let subject = match (items, lines.first()) {
        ([_], Some((only, _))) => one_line(&format!("{brand}: {only}"), SUBJECT),
        _ => format!("{brand}: {} things happened", items.len()),
    };
    let more = items.len().saturating_sub(LISTED);
    let (mut text, mut html) = (String::new(), String::from("<!doctype html><html><body style=\"font-family:sans-serif\">"));
    if items.len() > 1 {
        let _ = write!(text, "{} things happened.\n\n", items.len());
        let _ = write!(html, "<p>{} things happened.</p>", items.len());
    }
    html.push_str("<ul>");
    for (said, when) in &lines {
        let _ = write!(text, "- {said}\n  {when}\n\n");
        let _ = write!(html, "<li>{}<br><small>{}</small></li>", escaped(said), escaped(when));
    }
    html.push_str("</ul>");
    if more > 0 {
        let _ = write!(text, "And {more} more.\n\n");
        let _ = write!(html, "<p>And {more} more.</p>");
    }
    if let Some(link) = link {
        let _ = write!(text, "{link}\n\n");
        let _ = write!(html, "<p><a href=\"{0}\">{0}</a></p>", escaped(link));
    }
    let why = one_line(why, LINE);
    let _ = write!(text, "-- \n{why}\n");
    let _ = write!(html, "<hr><p><small>{}</small></p></body></html>", escaped(&why));
    Message { to: to.to_owned(), id, at, subject, text, html }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn item(said: &str) -> Item {
        Item { hostname: Some("support.acme.test".into()), said: said.into(), at: Moment::from_secs(0) }
    }

    fn written(items: &[Item]) -> Message {
        compose(
            "ops@acme.test",
            "Acme Domains",
            "evt_1".into(),
            Moment::from_secs(1),
            items,
            Some("https://portal.example/domains"),
            "You are a contact.",
        )
    }

    #[test]
    fn one_thing_is_its_own_subject_and_many_are_counted() {
        let one = written(&[item("the record is gone")]);
        assert_eq!(one.subject, "Acme Domains: support.acme.test: the record is gone");
        assert!(one.text.contains("1 Jan 1970, 00:00 UTC") && one.text.contains("https://portal.example/domains"));
        let many = written(&vec![item("the certificate of support.acme.test ends"); 5_000]);
        assert_eq!(many.subject, "Acme Domains: 5000 things happened");
        assert!(many.text.contains("And 4975 more.") && many.text.len() < 10_000 && many.html.len() < 10_000);
        assert_eq!(many.text.matches("The certificate of support.acme.test ends").count(), LISTED);
    }

    #[test]
    fn what_others_typed_does_nothing() {
        let hostile = written(&[item("x\r\nBcc: evil@example.com\r\n\r\n<script>alert(1)</script>\u{202e}\0")]);
        assert!(!hostile.subject.contains(['\r', '\n', '\0', '\u{202e}']));
        assert!(!hostile.html.contains("<script") && !hostile.text.contains("\nBcc"));
    }

    proptest! {
        #[test]
        fn subjects_are_one_short_line(said in "\\PC{0,400}|[\r\n\t\0 -~]{0,200}", name in "\\PC{0,60}", brand in "\\PC{0,90}") {
            let item = Item { hostname: Some(name), said, at: Moment::from_secs(0) };
            let m = compose("a@b.co", &brand, "x".into(), Moment::from_secs(0), &[item], None, "why");
            prop_assert!(m.subject.chars().count() <= SUBJECT);
            prop_assert!(m.subject.chars().all(|c| !c.is_control()));
            prop_assert_eq!(m.html.matches("<li>").count(), 1);
        }
    }
}
