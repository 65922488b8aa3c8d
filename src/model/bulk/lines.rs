//! Lines of a file, from pieces of any size, in constant memory.

use super::FileError;

/// The longest line that is read; a row of three cells needs far less.
pub(super) const LONGEST_LINE: usize = 16 * 1024;

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// Its text, without the end.
    Text(&'a str),
    /// It is longer than any row; what it holds is not kept.
    TooLong,
}

/// Cuts bytes into lines at LF, CRLF or a CR alone.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// The line that is still arriving.
    held: Vec<u8>,
    too_long: bool,
    /// Lines that are whole.
    done: u64,
    /// The last byte was a CR: an LF that follows belongs to it.
    after_cr: bool,
    /// The first bytes, until it is known what they are; then nothing.
    head: Option<Vec<u8>>,
}

/// How many bytes tell what kind of file it is.
const HEAD: usize = 8;

impl Lines {
    pub(super) fn new() -> Self {
        Lines { head: Some(Vec::new()), ..Lines::default() }
    }

    /// Takes a piece and hands every line that it completes to `each`, with its number.
    pub(super) fn feed(
        &mut self,
        piece: &[u8],
        each: &mut dyn FnMut(u64, Line<'_>) -> Result<(), FileError>,
    ) -> Result<(), FileError> {
        let Some(mut head) = self.head.take() else { return self.cut(piece, each) };
        head.extend_from_slice(piece);
        if head.len() < HEAD {
            self.head = Some(head);
            return Ok(());
        }
        self.begin(&head, each)
    }

    /// The end of the file: whatever is left is a line, too. How many lines there were.
    pub(super) fn finish(&mut self, each: &mut dyn FnMut(u64, Line<'_>) -> Result<(), FileError>) -> Result<u64, FileError> {
        if let Some(head) = self.head.take() {
            self.begin(&head, each)?;
        }
        if !self.held.is_empty() || self.too_long {
            self.end_line(each)?;
        }
        Ok(self.done)
    }

    fn begin(&mut self, head: &[u8], each: &mut dyn FnMut(u64, Line<'_>) -> Result<(), FileError>) -> Result<(), FileError> {
        recognise(head)?;
        self.cut(head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head), each)
    }

    fn cut(
        &mut self,
        mut bytes: &[u8],
        each: &mut dyn FnMut(u64, Line<'_>) -> Result<(), FileError>,
    ) -> Result<(), FileError> {
        if self.after_cr && bytes.first().is_some_and(|b| *b == b'\n') {
            bytes = &bytes[1..];
            self.after_cr = false;
        }
        while let Some(end) = bytes.iter().position(|b| matches!(b, b'\n' | b'\r')) {
            self.hold(&bytes[..end]);
            self.end_line(each)?;
            self.after_cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            if self.after_cr && bytes.first() == Some(&b'\n') {
                bytes = &bytes[1..];
                self.after_cr = false;
            }
        }
        if !bytes.is_empty() {
            self.after_cr = false;
            self.hold(bytes);
        }
        Ok(())
    }

    fn hold(&mut self, bytes: &[u8]) {
        if self.too_long || self.held.len() + bytes.len() > LONGEST_LINE {
            self.too_long = true;
            self.held.clear();
        } else {
            self.held.extend_from_slice(bytes);
        }
    }

    fn end_line(&mut self, each: &mut dyn FnMut(u64, Line<'_>) -> Result<(), FileError>) -> Result<(), FileError> {
        self.done += 1;
        let too_long = std::mem::take(&mut self.too_long);
        let outcome = match std::str::from_utf8(&self.held) {
            _ if too_long => each(self.done, Line::TooLong),
            Ok(text) => each(self.done, Line::Text(text)),
            Err(e) => Err(not_utf8(self.done, &self.held, e.valid_up_to())),
        };
        self.held.clear();
        outcome
    }
}

fn not_utf8(line: u64, bytes: &[u8], at: usize) -> FileError {
    let byte = bytes.get(at).copied().unwrap_or_default();
    // As a reader of Latin-1 would see it, which is what such a file most probably is.
    let read: String = bytes.iter().take(60).map(|b| char::from(*b)).filter(|c| !c.is_control()).collect();
    let detail = format!(
        "Line {line} is not UTF-8 text: its byte {} is {byte:#04x}. In Latin-1 the line reads “{read}”. Save the file as UTF-8 and \
         send it again.",
        at + 1
    );
    FileError::new("file_not_utf8", Some(line), detail)
}

/// Refuses what is told by its first bytes.
fn recognise(head: &[u8]) -> Result<(), FileError> {
    let kind = if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
        "text in UTF-16"
    } else if head.starts_with(b"PK\x03\x04") {
        "a workbook or an archive (it begins with PK)"
    } else if head.starts_with(b"\xd0\xcf\x11\xe0") {
        "an old workbook (.xls)"
    } else if head.starts_with(b"\x1f\x8b") {
        "compressed (gzip)"
    } else if head.starts_with(b"%PDF") {
        "a PDF"
    } else if head.iter().take(4).any(|b| *b == 0) {
        "text in UTF-16 or UTF-32, or no text at all"
    } else {
        return Ok(());
    };
    let detail = format!("The file is {kind}. Save it as plain CSV in UTF-8 (“CSV UTF-8” in Excel) and send that.");
    Err(FileError::new("file_not_utf8", Some(1), detail))
}
