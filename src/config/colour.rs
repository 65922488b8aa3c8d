//! Colours, and how far apart two of them are to the eye (WCAG 2.2, "contrast ratio").

use super::setting::Setting;

/// A colour of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour(pub [u8; 3]);

impl Colour {
    /// White.
    pub const WHITE: Colour = Colour([255; 3]);

    /// Its relative luminance.
    fn luminance(self) -> f64 {
        let linear = |part: u8| {
            let part = f64::from(part) / 255.0;
            if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        };
        let [r, g, b] = self.0.map(linear);
        0.2126 * r + 0.7152 * g + 0.0722 * b
    }

    /// The contrast ratio, from 1 (the same) to 21 (black on white).
    pub fn contrast(self, other: Colour) -> f64 {
        let (a, b) = (self.luminance(), other.luminance());
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    /// A part of the way, in 64ths, towards another colour.
    fn towards(self, goal: Colour, part: u16) -> Colour {
        let mix = |i: usize| {
            let (from, to) = (u16::from(self.0[i]), u16::from(goal.0[i]));
            u8::try_from((from * (64 - part) + to * part) / 64).unwrap_or(u8::MAX)
        };
        Colour([mix(0), mix(1), mix(2)])
    }

    /// The nearest colour on the way to `goal` that stands out by `ratio` from all of `grounds`.
    pub fn readable_on(self, grounds: &[Colour], goal: Colour, ratio: f64) -> Colour {
        let fits = |c: &Colour| grounds.iter().all(|ground| c.contrast(*ground) >= ratio);
        (0..=64).map(|part| self.towards(goal, part)).find(fits).unwrap_or(goal)
    }
}

impl Setting for Colour {
    const EXPECTED: &'static str = "a colour like #24509a";
    fn read(text: &str) -> Option<Self> {
        let digits = text.trim().strip_prefix('#')?;
        let wide: String = match digits.len() {
            3 => digits.chars().flat_map(|c| [c, c]).collect(),
            6 => digits.to_owned(),
            _ => return None,
        };
        if !wide.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        let part = |at: usize| u8::from_str_radix(wide.get(at..at + 2)?, 16).ok();
        Some(Colour([part(0)?, part(2)?, part(4)?]))
    }
    fn show(&self) -> String {
        let [r, g, b] = self.0;
        format!("#{r:02x}{g:02x}{b:02x}")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DARK: Colour = Colour([0x1c, 0x20, 0x27]);

    #[test]
    fn colours_are_read_and_compared_as_the_guidelines_do() {
        assert_eq!(Colour::read("#0a5"), Some(Colour([0x00, 0xaa, 0x55])));
        for bad in ["", "red", "#12345", "#ggg", "#ééé", "#1234567", "rgb(1,2,3)", "#12é4"] {
            assert_eq!(Colour::read(bad), None, "{bad}");
        }
        assert!((Colour([0; 3]).contrast(Colour::WHITE) - 21.0).abs() < 0.01);
        // A known pair: #767676 on white is 4.54.
        assert!((Colour([0x76; 3]).contrast(Colour::WHITE) - 4.54).abs() < 0.01);
    }

    proptest! {
        #[test]
        fn any_accent_becomes_readable_in_both_schemes(parts: [u8; 3]) {
            let accent = Colour(parts);
            prop_assert_eq!(Colour::read(&accent.show()), Some(accent));
            prop_assert!(accent.readable_on(&[Colour::WHITE], Colour([0; 3]), 4.5).contrast(Colour::WHITE) >= 4.5);
            prop_assert!(accent.readable_on(&[DARK], Colour::WHITE, 4.5).contrast(DARK) >= 4.5);
        }
    }
}
