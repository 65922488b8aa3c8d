//! Why a text is no hostname we can take: a stable code, what was seen, what to type instead.

use std::fmt;

/// A refusal. Its `Display` is the whole sentence, suggestion included.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", Hint(.suggestion.as_deref()))]
pub struct HostnameError {
    /// Stable code, such as `hostname_has_port`.
    pub code: &'static str,
    /// What was seen and what is wanted, in one or two sentences.
    pub message: String,
    /// A hostname that would be accepted and is probably what was meant.
    pub suggestion: Option<String>,
}

impl HostnameError {
    pub(super) fn new(code: &'static str, message: String) -> Self {
        HostnameError { code, message, suggestion: None }
    }

    pub(super) fn suggest(mut self, name: Option<String>) -> Self {
        self.suggestion = name;
        self
    }
}

struct Hint<'a>(Option<&'a str>);

impl fmt::Display for Hint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(name) => write!(f, " Type {name} instead."),
            None => Ok(()),
        }
    }
}

/// The input as it may be quoted: invisible and control characters spelled out, long ones cut.
pub(super) fn seen(input: &str) -> String {
    const MOST: usize = 80;
    let mut out: String = input.chars().take(MOST).flat_map(spell).collect();
    if input.chars().nth(MOST).is_some() {
        out.push('…');
    }
    format!("“{out}”")
}

fn spell(c: char) -> Vec<char> {
    if invisible(c).is_some() { format!("[U+{:04X}]", u32::from(c)).chars().collect() } else { c.escape_debug().collect() }
}

/// The name of a character that cannot be seen, if it is one.
pub fn invisible(c: char) -> Option<&'static str> {
    Some(match c {
        '\u{a0}' => "no-break space",
        '\u{ad}' => "soft hyphen",
        '\u{34f}' => "combining grapheme joiner",
        '\u{61c}' => "Arabic letter mark",
        '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' => "Hangul filler",
        '\u{17b4}' | '\u{17b5}' => "Khmer inherent vowel",
        '\u{180b}'..='\u{180f}' => "Mongolian variation selector",
        '\u{2000}'..='\u{200a}' | '\u{1680}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => "wide or narrow space",
        '\u{200b}' => "zero-width space",
        '\u{200c}' => "zero-width non-joiner",
        '\u{200d}' => "zero-width joiner",
        '\u{200e}' | '\u{200f}' => "direction mark",
        '\u{2028}' | '\u{2029}' => "line separator",
        '\u{202a}'..='\u{202e}' => "direction override",
        '\u{2060}' => "word joiner",
        '\u{2061}'..='\u{2064}' => "invisible operator",
        '\u{2066}'..='\u{2069}' => "direction isolate",
        '\u{206a}'..='\u{206f}' => "deprecated format character",
        '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => "variation selector",
        '\u{feff}' => "byte order mark",
        '\u{e0000}'..='\u{e007f}' => "tag character",
        c if c.is_control() => "control character",
        _ => return None,
    })
}
