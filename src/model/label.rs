//! Texts that people give things to know them by: names, tiers, labels of tokens.

/// What a label may be.
#[derive(Clone, Copy, Debug)]
pub struct Label {
    /// What it is called in a refusal.
    pub what: &'static str,
    /// The most characters it may have.
    pub most: usize,
}

/// Why a text is no label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LabelError {
    /// It is empty or too long.
    #[error("the {what} is {seen} characters long; it must have 1 to {most}")]
    Length {
        /// What it was for.
        what: &'static str,
        /// How long it is.
        seen: usize,
        /// How long it may be.
        most: usize,
    },
    /// It holds a character that nobody sees, or that changes how its neighbours are shown.
    #[error("the {what} contains U+{:04X}, which is not shown or changes how others are shown; leave it out", u32::from(*.seen))]
    Unseen {
        /// What it was for.
        what: &'static str,
        /// The character.
        seen: char,
    },
}

impl Label {
    /// What a tenant is called.
    pub const NAME: Label = Label { what: "name", most: 200 };
    /// The tier of a tenant.
    pub const TIER: Label = Label { what: "tier", most: 60 };
    /// What a token is called.
    pub const TOKEN: Label = Label { what: "label", most: 200 };

    /// The text without the blanks around it.
    pub fn read(self, typed: &str) -> Result<String, LabelError> {
        let text = typed.trim();
        let seen = text.chars().count();
        if !(1..=self.most).contains(&seen) {
            return Err(LabelError::Length { what: self.what, seen, most: self.most });
        }
        match text.chars().find(|c| is_unseen(*c)) {
            Some(seen) => Err(LabelError::Unseen { what: self.what, seen }),
            None => Ok(text.to_owned()),
        }
    }
}

/// Control characters, and those that take no room or turn the direction of writing.
fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{00ad}' | '\u{034f}' | '\u{061c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_have_a_length_and_nothing_that_hides() {
        assert_eq!(Label::NAME.read("  Acme <b>&</b> Söhne "), Ok("Acme <b>&</b> Söhne".into()));
        assert_eq!(Label::TIER.read(" "), Err(LabelError::Length { what: "tier", seen: 0, most: 60 }));
        assert!(matches!(Label::TOKEN.read(&"x".repeat(10_000)), Err(LabelError::Length { seen: 10_000, .. })));
        for c in ['\0', '\n', '\u{202e}', '\u{200b}', '\u{feff}', '\u{1b}'] {
            assert_eq!(Label::NAME.read(&format!("a{c}b")), Err(LabelError::Unseen { what: "name", seen: c }));
        }
    }
}
