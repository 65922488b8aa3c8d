//! From the pieces of an upload to rows.

use serde::Deserialize;

use super::columns::{self, Column, Columns};
use super::lines::{LONGEST_LINE, Line, Lines};
use super::problem::tame;
use super::{FileError, Format, Row, RowProblem, RowRules};

/// Reads a file as it arrives.
#[derive(Debug)]
pub struct Reader {
    lines: Lines,
    rows: Rows,
}

#[derive(Debug)]
struct Rows {
    format: Format,
    rules: RowRules,
    most: u64,
    columns: Option<Columns>,
    count: u64,
}

/// What a line of NDJSON may hold; what our result file adds is read and left alone.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Object {
    #[serde(alias = "domain")]
    hostname: String,
    tenant: Option<String>,
    method: Option<String>,
    #[serde(default, rename = "line")]
    _line: serde::de::IgnoredAny,
    #[serde(default, rename = "verdict")]
    _verdict: serde::de::IgnoredAny,
    #[serde(default, rename = "code")]
    _code: serde::de::IgnoredAny,
    #[serde(default, rename = "detail")]
    _detail: serde::de::IgnoredAny,
    #[serde(default, rename = "suggestion")]
    _suggestion: serde::de::IgnoredAny,
    #[serde(default, rename = "domain_id")]
    _domain_id: serde::de::IgnoredAny,
}

impl Reader {
    /// For a file of at most `most` rows.
    pub fn new(format: Format, rules: RowRules, most: u64) -> Self {
        Reader { lines: Lines::new(), rows: Rows { format, rules, most, columns: None, count: 0 } }
    }

    /// Takes a piece; the rows that it completes go to the end of `out`.
    pub fn feed(&mut self, piece: &[u8], out: &mut Vec<Row>) -> Result<(), FileError> {
        let Reader { lines, rows } = self;
        lines.feed(piece, &mut |number, line| rows.take(number, &line, out))
    }

    /// The end of the file.
    pub fn finish(&mut self, out: &mut Vec<Row>) -> Result<(), FileError> {
        let Reader { lines, rows } = self;
        lines.finish(&mut |number, line| rows.take(number, &line, out))?;
        if rows.count == 0 {
            let detail = match (rows.format, &rows.columns) {
                (Format::Csv, Some(_)) => "The file has a header and no rows below it.",
                (Format::Csv, None) => "The file is empty. It begins with a line that names the columns: hostname,tenant.",
                (Format::Ndjson, _) => {
                    "The file is empty. It has one object a line, such as {\"hostname\": \"support.example.com\"}."
                }
            };
            return Err(FileError::new("file_empty", None, detail));
        }
        Ok(())
    }

    /// Rows read so far.
    pub fn count(&self) -> u64 {
        self.rows.count
    }
}

impl Rows {
    fn take(&mut self, number: u64, line: &Line<'_>, out: &mut Vec<Row>) -> Result<(), FileError> {
        let blank = |c: char| c.is_whitespace() || self.format == Format::Csv && matches!(c, ',' | ';');
        if matches!(line, Line::Text(text) if text.trim_matches(blank).is_empty()) {
            return Ok(());
        }
        let row = match (self.format, line) {
            (Format::Csv, line) if self.columns.is_none() => {
                let Line::Text(text) = line else {
                    let detail = format!("The first line is longer than {LONGEST_LINE} bytes; it must name the columns.");
                    return Err(FileError::new("header_missing", Some(number), detail));
                };
                self.columns = Some(columns::header(text, number)?);
                return Ok(());
            }
            (_, Line::TooLong) => {
                let detail = format!("The line is longer than {LONGEST_LINE} bytes, which no row needs.");
                Row::unreadable(number, "", RowProblem::new("row_too_long", detail), &self.rules)
            }
            (Format::Csv, Line::Text(text)) => self.cells(number, text),
            (Format::Ndjson, Line::Text(text)) => self.object(number, text)?,
        };
        self.count += 1;
        if self.count > self.most {
            let detail = format!(
                "The file has more than {} rows, which is the most (imports.max_rows). Cut it in parts; a row sent twice does no harm.",
                self.most
            );
            return Err(FileError::new("too_many_rows", Some(number), detail));
        }
        out.push(row);
        Ok(())
    }

    fn cells(&self, number: u64, text: &str) -> Row {
        let Some(Columns { separator, all }) = &self.columns else {
            return Row::unreadable(number, text, RowProblem::new("row_unreadable", "There is no header."), &self.rules);
        };
        let Some(cells) = columns::cells(text, *separator) else {
            let detail =
                "A quote is opened and not closed on this line; a cell holds no line breaks. Close it, or double the quote.";
            return Row::unreadable(number, text, RowProblem::new("row_quote_open", detail), &self.rules);
        };
        // Spreadsheets leave empty cells at the end of a row away, or add some.
        let filled = cells.iter().rposition(|cell| !cell.trim().is_empty()).map_or(0, |last| last + 1);
        if filled > all.len() || (cells.len() < all.len() && columns::other_separator(text, *separator).is_some()) {
            let mut detail = format!("The row has {filled} cells where the header names {}.", all.len());
            if let Some(words) = columns::other_separator(text, *separator) {
                detail.push_str(&format!(" It seems to be written with {words}, the header is not."));
            }
            return Row::unreadable(number, text, RowProblem::new("row_cells", detail), &self.rules);
        }
        let of =
            |wanted: Column| all.iter().zip(&cells).find(|(column, _)| **column == wanted).map(|(_, cell)| cell.as_str());
        let hostname = of(Column::Hostname).unwrap_or_default();
        Row::new(number, hostname, of(Column::Tenant), of(Column::Method), &self.rules)
    }

    fn object(&self, number: u64, text: &str) -> Result<Row, FileError> {
        // A list would be read, too, as an object whose fields go by their places.
        let read = if text.trim_start().starts_with('{') {
            serde_json::from_str::<Object>(text)
        } else {
            Err(serde::de::Error::custom("there is no { at its beginning"))
        };
        match read {
            Ok(o) => Ok(Row::new(number, &o.hostname, o.tenant.as_deref(), o.method.as_deref(), &self.rules)),
            Err(e) if self.count == 0 && !text.trim_start().starts_with('{') => {
                let detail = format!(
                    "Line {number} is no JSON object but “{}” ({e}). NDJSON has one object a line, such as {{\"hostname\": \
                     \"support.example.com\"}}; a CSV file is sent as text/csv.",
                    tame(text, 40)
                );
                Err(FileError::new("not_ndjson", Some(number), detail))
            }
            Err(e) => Ok(Row::unreadable(number, text, unreadable(text, &e), &self.rules)),
        }
    }
}

fn unreadable(text: &str, e: &serde_json::Error) -> RowProblem {
    let object: Option<serde_json::Map<String, serde_json::Value>> = serde_json::from_str(text).ok();
    let upstream = object.and_then(|o| o.keys().map(|key| columns::plain(key)).find(|key| columns::is_upstream(key)));
    if let Some(key) = upstream {
        let detail = format!(
            "The row has a field {key:?}, but where requests go is set by the operator's configuration alone, never by a file."
        );
        return RowProblem::new("column_refused", detail);
    }
    // The message quotes what was read: it is cut and tamed like everything from a file. Its line is that of the row, not 1.
    let said = e.to_string();
    let place = format!(" at line {} column {}", e.line(), e.column());
    let said = said.strip_suffix(&place).map_or(said.clone(), |what| format!("{what}, at character {}", e.column()));
    RowProblem::new(
        "row_unreadable",
        format!("The line is not an object with hostname, tenant and method: {}.", tame(&said, 120)),
    )
}
