//! Lines of CSV that a spreadsheet shows and never executes.

/// Whether a spreadsheet would take the cell for a formula.
pub fn is_formula(cell: &str) -> bool {
    let first = cell.trim_start_matches([' ', '\u{a0}']).chars().next();
    first.is_some_and(|c| matches!(c, '=' | '+' | '-' | '@' | '\t' | '\r' | '\n' | '＝' | '＋' | '－' | '＠' | '|'))
}

/// One line with its end. Cells that would be formulas get an apostrophe before them, which says "text" to every spreadsheet.
pub fn line(cells: &[&str], out: &mut String) {
    for (n, cell) in cells.iter().enumerate() {
        if n > 0 {
            out.push(',');
        }
        let mark = if is_formula(cell) { "'" } else { "" };
        if mark.is_empty() && !cell.contains([',', ';', '"', '\t', '\r', '\n', ' ']) {
            out.push_str(cell);
            continue;
        }
        out.push('"');
        out.push_str(mark);
        out.push_str(&cell.replace('"', "\"\""));
        out.push('"');
    }
    out.push_str("\r\n");
}
