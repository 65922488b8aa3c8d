//! A writer that keeps every event on one line.

use std::io::{self, Write};

/// Passes events on with control characters escaped, all but the newline at an event's end.
pub struct OneLine<W>(pub W);

/// What a terminal, a pager or a log reader would act on instead of showing.
fn acts_on_readers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

impl<W: Write> Write for OneLine<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let (body, end) = match text.strip_suffix('\n') {
            Some(body) => (body, "\n"),
            None => (&*text, ""),
        };
        if body.chars().any(acts_on_readers) {
            let mut escaped = String::with_capacity(body.len() + 16);
            for c in body.chars() {
                if acts_on_readers(c) { escaped.extend(c.escape_default()) } else { escaped.push(c) }
            }
            self.0.write_all(escaped.as_bytes())?;
        } else {
            self.0.write_all(body.as_bytes())?;
        }
        self.0.write_all(end.as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
