//! A writer that keeps every event on one line, and the escape it uses.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Passes events on with control characters escaped, all but the newline at an event's end.
pub struct OneLine<W>(pub W);

/// What a terminal, a pager or a log reader would act on instead of showing. All are in the basic plane.
fn acts_on_readers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text with such characters as `\u001b`, an escape that JSON reads too.
pub fn one_line(text: &str) -> Cow<'_, str> {
    if !text.chars().any(acts_on_readers) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if acts_on_readers(c) {
            // Writing to a string cannot fail.
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out.into()
}

impl<W: Write> Write for OneLine<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let (body, end) = match text.strip_suffix('\n') {
            Some(body) => (body, "\n"),
            None => (&*text, ""),
        };
        self.0.write_all(one_line(body).as_bytes())?;
        self.0.write_all(end.as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
