use super::english::every_text;
use super::said::Said;
use super::stay_in_zone;

#[test]
fn every_text_has_its_values_and_no_other() {
    let all = every_text();
    let mut keys: Vec<(&str, &str)> = all.iter().map(|(space, (key, ..))| (*space, *key)).collect();
    let count = keys.len();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), count, "a key stands twice");
    for (space, (key, text, values)) in &all {
        assert!(!text.is_empty() && text.trim() == *text || text.starts_with(' ') || text.ends_with(' '), "{space}::{key}");
        let Some(values) = values else {
            assert!(!text.contains(['{', '}', '*', '`']), "{key} has markup and is shown as it stands");
            continue;
        };
        let named: Vec<&str> = text.split('{').skip(1).filter_map(|rest| Some(rest.split_once('}')?.0)).collect();
        assert!(named.iter().all(|name| values.contains(name)) && values.iter().all(|v| named.contains(v)), "{key}");
        for mark in ['*', '`'] {
            assert_eq!(text.matches(mark).count() % 2, 0, "{key} leaves {mark} open");
        }
    }
}

#[test]
fn values_stay_text_and_marks_in_them_are_none() {
    let said = stay_in_zone("<b>*{zone}*`");
    assert_eq!(said.to_string(), "They stay in the DNS of <strong>&#60;b&#62;*{zone}*`</strong>.");
    assert_eq!(said.plain(), "They stay in the DNS of <b>*{zone}*`.");
    assert_eq!(
        stay_in_zone("مثال.example").to_string(),
        "They stay in the DNS of <strong><bdi>مثال.example</bdi></strong>."
    );
}

/// A text without `name="…"`: a block may hold the attributes of a tag that stands in another template.
fn without_attributes(text: &str) -> String {
    let Some((before, after)) = text.split_once("=\"") else { return text.to_owned() };
    let start = before.rfind([' ', '\u{1}']).map_or(0, |at| at + 1);
    format!("{}{}", &before[..start], without_attributes(after.split_once('"').map_or("", |(_, rest)| rest)))
}

/// What a template says by itself: everything outside of tags, comments and expressions, and the attributes that are read aloud.
fn bare(template: &str) -> Vec<String> {
    let mut left = String::new();
    let mut rest = template;
    // Expressions and statements first: they may stand inside of tags.
    while let Some(at) = rest.find(['{']) {
        let (before, from) = rest.split_at(at);
        left.push_str(before);
        let end = match from.as_bytes().get(1) {
            Some(b'{') => from.find("}}").map(|end| end + 2),
            Some(b'%') => from.find("%}").map(|end| end + 2),
            Some(b'#') => from.find("#}").map(|end| end + 2),
            _ => None,
        };
        match end {
            Some(end) => {
                left.push('\u{1}');
                rest = &from[end..];
            }
            None => {
                left.push('{');
                rest = &from[1..];
            }
        }
    }
    left.push_str(rest);
    let mut said = Vec::new();
    for (n, piece) in left.split('<').enumerate() {
        let (tag, text) = if n == 0 { ("", piece) } else { piece.split_once('>').unwrap_or((piece, "")) };
        said.push(without_attributes(text));
        for attribute in ["aria-label", "title", "alt", "placeholder", "content"] {
            let value = tag.split_once(&format!(" {attribute}=\"")).and_then(|(_, rest)| rest.split_once('"'));
            let machine = attribute == "content" && tag.starts_with("meta");
            said.extend(value.filter(|_| !machine).map(|(value, _)| value.to_owned()));
        }
    }
    said.retain(|text| text.chars().any(char::is_alphabetic));
    said
}

fn templates(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(templates(&path));
        } else if path.extension().is_some_and(|extension| extension == "html") {
            found.push(path);
        }
    }
    found
}

#[test]
fn templates_hold_no_words() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("templates");
    let mut read = 0;
    for path in templates(&folder) {
        // The pretend provider, CA and origin of the sandbox are no pages of the product.
        if path.starts_with(folder.join("sandbox")) {
            continue;
        }
        let words = bare(&std::fs::read_to_string(&path).unwrap());
        assert_eq!(words, Vec::<String>::new(), "{}: move these to the list of texts", path.display());
        read += 1;
    }
    assert!(read >= 40, "{read} templates were read");
}

#[test]
fn words_in_a_template_are_found() {
    assert_eq!(bare("<p>Hello {{ name }}</p>"), ["Hello \u{1}"]);
    assert_eq!(bare("<a title=\"Go\" href=\"/x\">{{ t::x() }}</a>"), ["Go"]);
    assert!(bare("{% if a %}<p class=\"x\">{{ t::y() }} · /</p>{% endif %}").is_empty());
}

#[test]
fn a_value_that_is_missing_is_nothing_rather_than_a_panic() {
    assert_eq!(Said::new("a {b", vec![]).plain(), "a ");
}
