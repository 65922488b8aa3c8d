use proptest::prelude::*;

use super::*;

/// A line with its marks in brackets.
fn shown(parts: &[Part<'_>]) -> String {
    parts.iter().map(|p| if p.differs { format!("[{}]", p.text) } else { p.text.to_owned() }).collect()
}

#[track_caller]
fn marks(expected: &str, seen: &str, left: &str, right: &str) {
    let both = compare(expected, seen);
    assert_eq!((shown(&both.expected).as_str(), shown(&both.seen).as_str()), (left, right));
}

#[test]
fn the_part_that_differs_is_marked_and_no_more() {
    marks(
        "support.acme.example → acme.app.example",
        "support.acme.example → shops.elsewhere.example",
        "support.acme.example → [acme.app.example]",
        "support.acme.example → [shops.elsewhere.example]",
    );
    // A slip inside a label.
    marks("acme.app.example", "acme.ap.example", "acme.ap[p].example", "acme.ap.example");
    // The zone appended by a panel.
    marks("acme.app.example", "acme.app.example.acme.com", "acme.app.example", "acme.app.example[.acme.com]");
    // A value cut short, and one of another attempt.
    marks(
        "nameplate-verify=0123456789abcdef",
        "nameplate-verify=0123456789",
        "nameplate-verify=0123456789[abcdef]",
        "nameplate-verify=0123456789",
    );
    marks("v=0123456789abcdef", "v=fedcba9876543210", "v=[0123456789abcdef]", "v=[fedcba9876543210]");
    // Nothing there.
    marks("TXT a.example = x", "TXT a.example: no such record", "TXT a.example [= x]", "TXT a.example[: no such record]");
}

#[test]
fn what_says_all_that_was_expected_agrees() {
    assert!(compare("TXT a.example = v1", "TXT a.example = \"v1\"").agrees());
    assert!(compare("a.example → b.example", "a.example → b.example: 192.0.2.1").agrees());
    assert!(!compare("a.example → b.example", "a.example → c.example: 192.0.2.1").agrees());
    assert!(compare("", "").agrees() && compare("", "x").agrees() && !compare("x", "").agrees());
}

#[test]
fn the_type_of_a_record_is_missed_by_nobody() {
    let both = compare_record("CNAME a.example → b.example", "a.example → c.test: 192.0.2.1");
    assert_eq!(shown(&both.expected), "CNAME a.example → [b.example]");
    assert_eq!(shown(&both.seen), "a.example → [c.test: 192.0.2.1]");
    assert!(compare_record("CNAME a.example → b.example", "a.example → b.example").agrees());
    assert!(compare_record("TXT a.example = v", "TXT a.example = \"v\"").agrees());
    assert!(!compare_record("a.example: only ours", "nothing").agrees() && compare_record("", "x").agrees());
}

#[test]
fn a_line_without_end_costs_no_time() {
    let (long, other) = ("a.".repeat(50_000), "b.".repeat(50_000));
    let both = compare(&long, &other);
    assert_eq!(both.expected.iter().map(|p| p.text.len()).sum::<usize>(), long.len());
}

proptest! {
    #[test]
    fn the_parts_are_the_line_and_what_is_alike_is_never_marked(a in "\\PC{0,60}", b in "\\PC{0,60}") {
        let both = compare(&a, &b);
        prop_assert_eq!(both.expected.iter().map(|p| p.text).collect::<String>(), a.clone());
        prop_assert_eq!(both.seen.iter().map(|p| p.text).collect::<String>(), b.clone());
        let alike = compare(&a, &a);
        prop_assert!(alike.agrees() && alike.seen.iter().all(|p| !p.differs));
        for parts in [&both.expected, &both.seen] {
            prop_assert!(parts.iter().all(|p| !p.text.is_empty()));
        }
    }
}
