//! The header of a CSV file: which column is which, and what stands between cells.

use super::FileError;
use super::problem::tame;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Hostname,
    Tenant,
    Method,
    /// A column of our own result file, which may be corrected and sent back.
    Ours,
}

/// What a header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Columns {
    pub(super) separator: u8,
    pub(super) all: Vec<Column>,
}

const SEPARATORS: [(u8, &str); 3] = [(b',', "commas"), (b';', "semicolons"), (b'\t', "tabs")];

/// The columns of our result file beside those that are read.
const OURS: [&str; 6] = ["line", "verdict", "code", "detail", "suggestion", "domain_id"];

/// Where requests go is no business of a file's.
const UPSTREAMS: [&str; 7] = ["upstream", "upstreams", "origin", "backend", "target", "destination", "forward_to"];

/// Why rows may not say where requests go.
pub(super) fn upstream_refusal(column: &str) -> String {
    format!(
        "There is a column {column:?}, but where requests go is set by the operator's configuration alone, never by a file. \
         Remove the column and send the file again."
    )
}

/// Whether a name is one of those.
pub(super) fn is_upstream(name: &str) -> bool {
    UPSTREAMS.contains(&name)
}

fn column(name: &str) -> Option<Column> {
    Some(match name {
        "hostname" | "domain" | "host" | "name" => Column::Hostname,
        "tenant" | "tenant_slug" | "tenant_id" | "slug" => Column::Tenant,
        "method" | "challenge" => Column::Method,
        ours if OURS.contains(&ours) => Column::Ours,
        _ => return None,
    })
}

/// A column's name as it is compared.
pub(super) fn plain(name: &str) -> String {
    name.trim().trim_start_matches('\'').to_ascii_lowercase().replace([' ', '-'], "_")
}

/// The cells of one line; `None` when a quote is opened and not closed.
pub(super) fn cells(line: &str, separator: u8) -> Option<Vec<String>> {
    let mut reader = csv_core::ReaderBuilder::new().delimiter(separator).build();
    let mut text = vec![0; line.len() + 1];
    let mut ends = vec![0; line.len() + 2];
    let (first, _, wrote, fields) = reader.read_record(line.as_bytes(), &mut text, &mut ends);
    debug_assert!(!matches!(first, csv_core::ReadRecordResult::Record), "a line holds no end of a line");
    // Outside quotes the end of the line ends the record; inside them it would be a part of the cell.
    let (second, _, more, last) = reader.read_record(b"\n", &mut text[wrote..], &mut ends[fields..]);
    if !matches!(second, csv_core::ReadRecordResult::Record) {
        return None;
    }
    let text = text.get(..wrote + more)?;
    let mut from = 0;
    let mut out = Vec::with_capacity(fields + last);
    for end in ends.get(..fields + last)? {
        out.push(String::from_utf8_lossy(text.get(from..*end)?).into_owned());
        from = *end;
    }
    Some(out)
}

/// Reads the header line.
pub(super) fn header(line: &str, number: u64) -> Result<Columns, FileError> {
    let wrong = |code, detail: String| Err(FileError::new(code, Some(number), detail));
    // The separator is the one that makes a hostname column appear; with one column any will do.
    let read = SEPARATORS.iter().filter_map(|(separator, _)| Some((*separator, cells(line, *separator)?)));
    let named = |names: &[String]| names.iter().filter(|name| column(&plain(name)).is_some()).count();
    let best = read.max_by_key(|(separator, names)| (named(names), names.len(), *separator == b','));
    let Some((separator, names)) = best else {
        return wrong("header_missing", "The first line opens a quote that it does not close.".into());
    };
    let seen = tame(line, 80);
    if named(&names) == 0 {
        let detail = if names.iter().any(|name| name.contains('.')) {
            format!(
                "The first line must name the columns, such as hostname,tenant, but it is “{seen}”, which looks like data. Put the \
                 names of the columns above it."
            )
        } else {
            format!(
                "The first line must name the columns, such as hostname,tenant, with commas, semicolons or tabs between them, but \
                 it is “{seen}”."
            )
        };
        return wrong("header_missing", detail);
    }
    let mut all = Vec::with_capacity(names.len());
    for name in &names {
        let plain = plain(name);
        if is_upstream(&plain) {
            return wrong("column_refused", upstream_refusal(&plain));
        }
        let Some(column) = column(&plain) else {
            let known = "hostname, tenant and method";
            let detail = format!("There is no column “{}” here: a file has {known}. Remove the others.", tame(name, 40));
            return wrong("column_unknown", detail);
        };
        if column != Column::Ours && all.contains(&column) {
            return wrong("column_repeated", format!("The column “{}” is there twice. Keep one.", tame(name, 40)));
        }
        all.push(column);
    }
    if !all.contains(&Column::Hostname) {
        return wrong(
            "header_missing",
            format!("No column is called hostname in “{seen}”. Name the one that holds the names."),
        );
    }
    Ok(Columns { separator, all })
}

/// What the separators of a line look like, when they are not those of its header.
pub(super) fn other_separator(line: &str, separator: u8) -> Option<&'static str> {
    SEPARATORS.iter().find(|(other, _)| *other != separator && line.as_bytes().contains(other)).map(|(_, words)| *words)
}
