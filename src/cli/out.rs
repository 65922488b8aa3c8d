//! Standard output, kept safe from what is printed on it.

use std::io::{self, Write};

use serde::Serialize;

use crate::telemetry::one_line;

/// So many of something.
pub(super) fn many(n: impl std::fmt::Display, one: &str) -> String {
    let n = n.to_string();
    format!("{n} {one}{}", if n == "1" { "" } else { "s" })
}

/// Where answers go.
pub struct Out<'a> {
    writer: &'a mut dyn Write,
    /// Whether documents are wanted instead of tables.
    pub json: bool,
}

impl<'a> Out<'a> {
    /// Answers on `writer`.
    pub fn new(writer: &'a mut dyn Write, json: bool) -> Self {
        Out { writer, json }
    }

    /// Where answers go, for what writes lines of its own.
    pub(super) fn writer(&mut self) -> &mut dyn Write {
        self.writer
    }

    /// One line; control characters in it are shown, not obeyed.
    pub fn line(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.writer, "{}", one_line(text))
    }

    /// A document.
    pub fn document(&mut self, document: &impl Serialize) -> io::Result<()> {
        let text = serde_json::to_string_pretty(document).map_err(io::Error::other)?;
        writeln!(self.writer, "{text}")
    }

    /// A table with its columns aligned.
    pub fn table(&mut self, head: &[&str], rows: &[Vec<String>]) -> io::Result<()> {
        // Escaped first: what is shown is what takes room.
        let shown: Vec<Vec<String>> =
            rows.iter().map(|row| row.iter().map(|cell| one_line(cell).to_string()).collect()).collect();
        let width = |i: usize| {
            let cells = shown.iter().filter_map(|row| row.get(i)).map(|cell| cell.chars().count());
            cells.chain(head.get(i).map(|cell| cell.chars().count())).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..head.len()).map(width).collect();
        let padded = |cells: &mut dyn Iterator<Item = &str>| {
            let joined: Vec<String> = cells.zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
            joined.join("  ").trim_end().to_owned()
        };
        self.line(&padded(&mut head.iter().copied()))?;
        for row in &shown {
            self.line(&padded(&mut row.iter().map(String::as_str)))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_something_is_one() {
        assert_eq!([0, 1, 2, 11].map(|n| many(n, "row")), ["0 rows", "1 row", "2 rows", "11 rows"]);
    }

    #[test]
    fn tables_align_and_hostile_cells_stay_in_their_line() {
        let mut bytes = Vec::new();
        let rows = [vec!["a".into(), "bücher".into()], vec!["\x1b[2J\nx".into(), "y".into()]];
        Out::new(&mut bytes, false).table(&["ID", "NAME"], &rows).unwrap();
        assert_eq!(
            String::from_utf8(bytes).unwrap(),
            "ID                NAME\na                 bücher\n\\u001b[2J\\u000ax  y\n"
        );
    }
}
