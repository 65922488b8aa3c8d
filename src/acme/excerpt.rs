//! What a page in HTML, or anything else that is no ACME document, says to a person: its text in one line, cut short.
//!
//! A proxy or a wall in front of a CA answers with pages. Nobody should have to read markup to learn that the CA is down for
//! maintenance, and no markup of somebody else's may travel on.

/// As much as fits into a sentence.
const MOST: usize = 160;
/// As much of a body as is looked at.
const LOOKED_AT: usize = 16 * 1024;

/// The text of a body without tags, scripts, control characters and repeated blanks; `None` when there is none.
pub(super) fn excerpt(body: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(&body[..body.len().min(LOOKED_AT)]);
    let mut words = String::new();
    let mut rest = text.as_ref();
    while let Some((before, tag)) = rest.split_once('<') {
        words.push_str(before);
        words.push(' ');
        rest = after_tag(tag);
    }
    words.push_str(rest);
    let words = words.replace("&nbsp;", " ").replace("&quot;", "\"").replace("&#39;", "'").replace("&amp;", "&");
    let shown = |c: char| if c.is_control() || c == '<' || c == '>' || c == char::REPLACEMENT_CHARACTER { ' ' } else { c };
    let words: String = words.chars().map(shown).collect();
    let line = words.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.is_empty() {
        return None;
    }
    let cut: String = line.chars().take(MOST).collect();
    Some(if cut.len() < line.len() { format!("{cut}…") } else { cut })
}

/// What follows a tag, and with scripts and styles what follows their end.
fn after_tag(tag: &str) -> &str {
    for name in ["script", "style"] {
        if tag.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name)) {
            // ASCII lower case keeps every byte in its place.
            let end = tag.to_ascii_lowercase().find(&format!("</{name}"));
            return end.and_then(|at| tag[at..].split_once('>')).map_or("", |(_, rest)| rest);
        }
    }
    tag.split_once('>').map_or("", |(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_page_is_read_as_people_read_it() {
        let page = "<html><head><title>502 Bad Gateway</title><STYLE>p{}</Style><script>alert('<b>')</script></head>\
                    <body>\n<center><h1>502 Bad&nbsp;Gateway</h1></center><hr>nginx &amp; co</body></html>";
        assert_eq!(excerpt(page.as_bytes()).unwrap(), "502 Bad Gateway 502 Bad Gateway nginx & co");
        assert_eq!(excerpt(b"  down for\r\n maintenance\x00\x1b[31m ").unwrap(), "down for maintenance [31m");
        assert_eq!(excerpt(b"<script>never closed"), None);
        assert_eq!(excerpt(b"<html><body></body></html>"), None);
        assert_eq!(excerpt(b""), None);
        let long = excerpt(&[b'a'; 5000]).unwrap();
        assert_eq!(long.chars().count(), MOST + 1);
    }

    proptest! {
        #[test]
        fn no_markup_and_no_control_character_gets_through(junk in prop::collection::vec(any::<u8>(), 0..600), html in "[<>/a-zé\u{0}-\u{1f} &;]{0,200}") {
            for text in [excerpt(&junk), excerpt(html.as_bytes())].into_iter().flatten() {
                prop_assert!(!text.contains(|c: char| c.is_control() || c == '<' || c == '>'), "{text:?}");
                prop_assert!(text.chars().count() <= MOST + 1);
            }
        }
    }
}
