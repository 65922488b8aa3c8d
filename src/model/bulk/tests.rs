use proptest::prelude::*;

use super::*;
use crate::model::hostname::NameRules;

fn rules(tenant_known: bool) -> RowRules {
    RowRules {
        names: NameRules { reserved_zones: vec!["app.example".into()], extra_suffixes: vec!["test".into()] },
        tenant_known,
    }
}

/// Reads a file in pieces of `size`.
fn read_in(format: Format, bytes: &[u8], size: usize, most: u64) -> Result<Vec<Row>, FileError> {
    let mut reader = Reader::new(format, rules(true), most);
    let mut rows = Vec::new();
    for piece in bytes.chunks(size.max(1)) {
        reader.feed(piece, &mut rows)?;
    }
    reader.finish(&mut rows)?;
    assert_eq!(u64::try_from(rows.len()).unwrap(), reader.count());
    Ok(rows)
}

fn csv(text: impl AsRef<[u8]>) -> Result<Vec<Row>, FileError> {
    read_in(Format::Csv, text.as_ref(), 7, 1000)
}

fn ndjson(text: &str) -> Result<Vec<Row>, FileError> {
    read_in(Format::Ndjson, text.as_bytes(), 7, 1000)
}

/// `line tenant name` of good rows, `line code` of bad ones.
fn short(rows: &[Row]) -> Vec<String> {
    let one = |row: &Row| match &row.read {
        Ok(name) => format!("{} {} {name}", row.line, row.tenant.as_deref().unwrap_or("-")),
        Err(problem) => format!("{} {}", row.line, problem.code),
    };
    rows.iter().map(one).collect()
}

#[test]
fn b76_marks_line_ends_quotes_and_blanks_are_invisible() {
    let rows =
        csv(b"\xef\xbb\xbfdomain,tenant\r\n\"shop.example.com\",A\r\n\r\n b.example.com ; B\r\nc.example.com,C").unwrap();
    assert_eq!(short(&rows), ["2 A shop.example.com", "4 row_cells", "5 C c.example.com"]);
    let Err(problem) = &rows[1].read else { panic!() };
    assert!(problem.detail.contains("semicolons"), "{}", problem.detail);
    for separator in [",", ";", "\t"] {
        let text = format!("Tenant{separator}Hostname\rA{separator}a.example.com\rB{separator}b.example.com\r");
        assert_eq!(short(&csv(text).unwrap()), ["2 A a.example.com", "3 B b.example.com"]);
    }
    assert_eq!(
        short(&csv("hostname\na.example.com\n,,\n;\nb.example.com\n").unwrap()),
        ["2 - a.example.com", "5 - b.example.com"]
    );
}

#[test]
fn b76_a_wrong_encoding_separator_or_header_is_one_error_of_the_file() {
    let utf16: Vec<u8> = "\u{feff}hostname\na.example.com\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let bare: Vec<u8> = "hostname\na.example.com\n".encode_utf16().flat_map(u16::to_be_bytes).collect();
    let files: [(&[u8], &str, Option<u64>, &str); 14] = [
        (&utf16, "file_not_utf8", Some(1), "UTF-16"),
        (&bare, "file_not_utf8", Some(1), "UTF-16"),
        (b"hostname\na.example.com\nb\xfccher.example.com\n", "file_not_utf8", Some(3), "bücher"),
        (b"PK\x03\x04\x14\0\x06\0", "file_not_utf8", Some(1), "workbook"),
        (b"shop.example.com,acme\n", "header_missing", Some(1), "looks like data"),
        (b"hostname|tenant\na.example.com|A\n", "header_missing", Some(1), "semicolons"),
        (b"tenant,method\nacme,\n", "header_missing", Some(1), "No column is called hostname"),
        (b"hostname,upstream\na.example.com,10.0.0.1\n", "column_refused", Some(1), "operator's configuration"),
        (b"hostname,notes\na.example.com,x\n", "column_unknown", Some(1), "notes"),
        (b"hostname,tenant,domain\na,b,c\n", "column_repeated", Some(1), "twice"),
        (b"", "file_empty", None, "empty"),
        (b"\xef\xbb\xbf", "file_empty", None, "empty"),
        (b"hostname,tenant\n\n", "file_empty", None, "no rows"),
        (b"\"hostname,tenant\na,b\n", "header_missing", Some(1), "quote"),
    ];
    for (bytes, code, line, said) in files {
        let error = csv(bytes).unwrap_err();
        assert_eq!((error.code, error.line), (code, line), "{error}");
        assert!(error.detail.contains(said), "{error}");
    }
    let error = csv(format!("{}\n", "x".repeat(10_000_000))).unwrap_err();
    assert_eq!((error.code, error.line), ("header_missing", Some(1)));
}

#[test]
fn b77_what_people_paste_is_refused_by_the_one_parser_with_its_suggestion() {
    let text = "hostname\nhttps://shop.example.com/path?x=1\nshop.example.com:8443\n shop.example.com \nuser@shop.example.com\n\
                exampleXcom\nwww.example.com\nshop.example.com/\nshop\u{a0}.example.com\nsh\u{200b}op.example.com\n";
    let rows = csv(text).unwrap();
    assert_eq!(
        short(&rows),
        [
            "2 hostname_is_url",
            "3 hostname_has_port",
            "4 - shop.example.com",
            "5 hostname_has_user",
            "6 hostname_single_label",
            "7 - www.example.com",
            "8 hostname_has_path",
            "9 hostname_invisible_character",
            "10 hostname_invisible_character",
        ]
    );
    let suggested = |n: usize| rows[n].read.as_ref().unwrap_err().suggestion.as_deref();
    assert_eq!([suggested(0), suggested(1), suggested(8)], [Some("shop.example.com"); 3]);
    assert_eq!(rows[8].typed, "sh[U+200B]op.example.com");
}

#[test]
fn b79_hostile_names_are_data_and_spoil_their_own_row_only() {
    let long = "a".repeat(10_000_000);
    let text = format!(
        "hostname,tenant\na.example.com {{,A\n\"a.example.com\nb.example.com\",A\n=1+1.example,A\n$(x).example,A\n{long},A\n\0,A\n\
         \"unclosed.example.com,A\nc.example.com,A,extra\nd.example.com,A,,\nlast.example.com,A"
    );
    let rows = read_in(Format::Csv, text.as_bytes(), 64 * 1024, 1000).unwrap();
    let told = short(&rows);
    assert_eq!(told.first().unwrap(), "2 hostname_has_blank");
    for bad in ["3 row_quote_open", "7 row_too_long", "9 row_quote_open", "10 row_cells"] {
        assert!(told.contains(&bad.to_owned()), "{bad} in {told:?}");
    }
    assert_eq!(told[told.len() - 2..], ["11 A d.example.com", "12 A last.example.com"]);
    assert_eq!(rows.iter().filter(|row| row.read.is_ok()).count(), 2, "{told:?}");
    for row in &rows {
        assert!(row.typed.chars().count() < 300 && !row.typed.contains(['\0', '\n']), "{:?}", row.typed);
    }
}

#[test]
fn objects_are_read_line_by_line_and_nothing_sets_an_upstream() {
    let text = "{\"hostname\":\"a.example.com\",\"tenant\":\"A\"}\r\n\n{\"hostname\":\"b.example.com\",\"method\":\"HTTP-01\"}\n\
                {\"hostname\":\"c.example.com\",\"upstream\":\"10.0.0.1\"}\n{\"hostname\":\"d.example.com\",\"notes\":1}\n\
                nonsense\n{\"hostname\":\"e.example.com\",\"method\":\"dns-01\"}\n[1]\n\
                {\"line\":4,\"hostname\":\"f.example.com\",\"verdict\":\"refused\",\"code\":null,\"detail\":\"x\",\"domain_id\":null}\n";
    assert_eq!(
        short(&ndjson(text).unwrap()),
        [
            "1 A a.example.com",
            "3 - b.example.com",
            "4 column_refused",
            "5 row_unreadable",
            "6 row_unreadable",
            "7 method_unknown",
            "8 row_unreadable",
            "9 - f.example.com",
        ]
    );
    assert_eq!(ndjson("hostname,tenant\na.example.com,A\n").unwrap_err().code, "not_ndjson");
    assert_eq!(ndjson("\n\n").unwrap_err().code, "file_empty");
    // A list whose places could be taken for fields is no object; the place that is told is one in the row's own line.
    let text = "{\"hostname\":\"a.example.com\"}\n[\"x.example.com\",\"A\",null,1,1,1,1,1,1]\n{\"hostname\":[1]}\n";
    let rows = ndjson(text).unwrap();
    let said = |n: usize| rows[n].read.as_ref().unwrap_err().detail.clone();
    assert_eq!(said(1), "The line is not an object with hostname, tenant and method: there is no { at its beginning.");
    assert!(said(2).ends_with("expected a string, at character 12."), "{}", said(2));
}

#[test]
fn rows_are_counted_and_a_tenant_is_wanted_where_nobody_said_one() {
    let error = read_in(Format::Csv, b"hostname\na.example.com\nb.example.com\nc.example.com\n", 5, 2).unwrap_err();
    assert_eq!((error.code, error.line), ("too_many_rows", Some(4)));
    let mut reader = Reader::new(Format::Csv, rules(false), 10);
    let mut rows = Vec::new();
    reader.feed(b"tenant,hostname\n,a.example.com\nA,b.example.com\n", &mut rows).unwrap();
    reader.finish(&mut rows).unwrap();
    assert_eq!(short(&rows), ["2 tenant_missing", "3 A b.example.com"]);
}

#[test]
fn a_result_file_executes_nothing_and_can_be_sent_back() {
    let mut out = String::new();
    sheet::line(&["hostname", "tenant", "verdict"], &mut out);
    for cell in ["=1+1", "+1", "-1", "@a", "\tx", " =1", "＝1", "a;b", "a\"b", "x y"] {
        sheet::line(&[cell, "A", "refused"], &mut out);
    }
    sheet::line(&["good.example.com", "A", "claimed"], &mut out);
    for line in out.lines().skip(1) {
        let first = columns::cells(line, b',').unwrap().remove(0);
        assert!(!sheet::is_formula(&first), "{line}");
    }
    let rows = csv(&out).unwrap();
    assert_eq!((rows.len(), rows[0].typed.as_str()), (11, "=1+1"));
    assert_eq!(short(&rows[10..]), ["12 A good.example.com"]);
}

proptest! {
    #[test]
    fn any_bytes_in_any_pieces_read_alike_and_never_panic(
        bytes in proptest::collection::vec(prop_oneof![
            4 => proptest::sample::select(b"hostname,;\t\"\r\n .az\xef\xbb\xbf\0\xff{}:=".to_vec()), 1 => any::<u8>()
        ], 0..300),
        size in 1_usize..40, headed in any::<bool>(), json in any::<bool>(),
    ) {
        let format = if json { Format::Ndjson } else { Format::Csv };
        let mut file = if headed && !json { b"hostname,tenant\n".to_vec() } else { Vec::new() };
        file.extend(bytes);
        let whole = read_in(format, &file, usize::MAX, 50);
        prop_assert_eq!(&read_in(format, &file, size, 50), &whole);
        if let Ok(rows) = whole {
            prop_assert!(!rows.is_empty() && rows.windows(2).all(|w| w[0].line < w[1].line));
            prop_assert!(rows.iter().all(|row| !row.typed.contains('\0')));
        }
    }

    #[test]
    fn what_is_written_is_read_again(
        names in proptest::collection::vec("[a-z]{1,10}\\.example\\.com", 1..20), separator in 0_usize..3, quoted in any::<bool>(),
    ) {
        let separator = [",", ";", "\t"][separator];
        let cell = |text: &str| if quoted { format!("\"{text}\"") } else { text.to_owned() };
        let mut text = format!("{}{separator}{}\n", cell("hostname"), cell("tenant"));
        for name in &names {
            text.push_str(&format!("{}{separator}{}\n", cell(name), cell("acme")));
        }
        let rows = csv(&text).unwrap();
        let read: Vec<String> = rows.iter().map(|row| row.read.clone().unwrap().to_string()).collect();
        prop_assert_eq!(read, names);
        prop_assert!(rows.iter().all(|row| row.tenant.as_deref() == Some("acme")));
    }

    #[test]
    fn no_cell_of_a_sheet_is_a_formula_and_its_text_survives(cells in proptest::collection::vec("[^\\r\\n\\x00\u{feff}]{0,30}", 2..6)) {
        let mut out = String::new();
        sheet::line(&cells.iter().map(String::as_str).collect::<Vec<_>>(), &mut out);
        let read = columns::cells(out.trim_end_matches("\r\n"), b',').unwrap();
        prop_assert_eq!(read.len(), cells.len());
        for (read, cell) in read.iter().zip(&cells) {
            prop_assert!(!sheet::is_formula(read));
            prop_assert_eq!(read.strip_prefix('\'').filter(|_| sheet::is_formula(cell)).unwrap_or(read), cell);
        }
    }
}
