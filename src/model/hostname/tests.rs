use proptest::prelude::*;

use super::{Hostname, HostnameError, NameRules};

fn rules() -> NameRules {
    NameRules { reserved_zones: vec!["platform.example".into()], extra_suffixes: vec!["test".into(), "example".into()] }
}

fn parse(input: &str) -> Result<Hostname, HostnameError> {
    Hostname::parse(input, &rules())
}

#[track_caller]
fn accepted(input: &str, stored: &str) {
    assert_eq!(parse(input).map_err(|e| e.to_string()).as_ref().map(Hostname::as_str), Ok(stored), "{input:?}");
}

#[track_caller]
fn refused(input: &str, code: &str, suggestion: Option<&str>) {
    let e = parse(input).expect_err(input);
    assert_eq!((e.code, e.suggestion.as_deref()), (code, suggestion), "{input:?}: {e}");
    assert!(e.message.ends_with('.'), "{e}");
}

#[test]
fn b48_three_spellings_are_one_a_label() {
    for spelling in
        ["bücher.example", "BÜCHER.example", "xn--bcher-kva.example", "XN--BCHER-KVA.example.", "bu\u{308}cher.example"]
    {
        accepted(spelling, "xn--bcher-kva.example");
    }
    let name = parse("bücher.example").unwrap();
    assert_eq!(name.display(), "bücher.example");
    // Non-transitional, as browsers do: ß stays ß.
    accepted("faß.de", "xn--fa-hia.de");
    accepted("bücher。example", "xn--bcher-kva.example");
    refused("xn--bcher-kv.example", "hostname_not_idna", None);
    refused("xn--.example.com", "hostname_not_idna", None);
    // An A-label that encodes plain ASCII would be a second spelling of another name.
    refused("xn--example-.com", "hostname_not_idna", None);
    refused("ab--cd.example.com", "hostname_hyphen", None);
}

#[test]
fn b49_names_that_must_never_reach_the_ca() {
    refused("_", "hostname_underscore", None);
    refused("smart_panel.example.com", "hostname_underscore", Some("smart-panel.example.com"));
    refused("_nameplate-challenge.shop.example.com", "hostname_underscore", Some("shop.example.com"));
    refused("localhost", "hostname_single_label", None);
    refused("co.uk", "hostname_is_public_suffix", None);
    refused("test", "hostname_single_label", None);
    refused("192.0.2.10", "hostname_is_ip", None);
    refused("[2001:db8::1]", "hostname_is_ip", None);
    refused("2001:db8::1", "hostname_is_ip", None);
    refused("2130706433", "hostname_is_ip", None);
    refused("0x7f.1", "hostname_is_ip", None);
    refused("0x7f000001", "hostname_is_ip", None);
    refused("１９２.0.2.１０", "hostname_is_ip", None);
    refused("-a.example.com", "hostname_hyphen", Some("a.example.com"));
    refused("a-.example.com", "hostname_hyphen", Some("a.example.com"));
    refused("a..example.com", "hostname_empty_label", Some("a.example.com"));
    refused(".example.com", "hostname_empty_label", Some("example.com"));
    refused("a。。example.com", "hostname_empty_label", Some("a.example.com"));
    refused("*.com", "hostname_wildcard", None);
    refused("*.shop.example.com", "hostname_wildcard", Some("shop.example.com"));
    refused("a.*.example.com", "hostname_wildcard", None);
    accepted("example.com.", "example.com");
    accepted("EXAMPLE.com", "example.com");
    let long = format!("{}.example.com", ["a".repeat(60).as_str(); 4].join("."));
    refused(&long, "hostname_too_long", None);
    refused(&format!("{}.com", "a".repeat(64)), "hostname_label_too_long", None);
    refused("shop.platform.example", "hostname_reserved", None);
    refused("platform.example", "hostname_reserved", None);
    accepted("shop.myplatform.example", "shop.myplatform.example");
    refused("support.acme.corp", "hostname_unknown_suffix", None);
    accepted("support.acme.test", "support.acme.test");
}

#[test]
fn b49_the_longest_name_leaves_room_for_the_ownership_label() {
    let name =
        |n: usize| format!("{}.{}.com", [["a".repeat(60).as_str(); 3].join("."), "b".repeat(n)].join("."), "c".repeat(8));
    let longest = name(232 - name(0).len());
    assert_eq!(longest.len(), 232);
    accepted(&longest, &longest);
    assert_eq!(format!("_nameplate-challenge.{longest}").len(), 253);
    refused(&name(233 - name(0).len()), "hostname_too_long", None);
}

#[test]
fn b77_urls_ports_and_blanks_instead_of_hostnames() {
    refused("https://shop.example.com/path?x=1", "hostname_is_url", Some("shop.example.com"));
    refused("//shop.example.com", "hostname_is_url", Some("shop.example.com"));
    refused("https://user:pw@shop.example.com:8443/", "hostname_is_url", Some("shop.example.com"));
    refused("https://192.0.2.10/", "hostname_is_url", None);
    refused("shop.example.com:8443", "hostname_has_port", Some("shop.example.com"));
    accepted(" shop.example.com \t\r\n", "shop.example.com");
    refused("user@shop.example.com", "hostname_has_user", Some("shop.example.com"));
    refused("mailto:user@shop.example.com", "hostname_has_user", Some("shop.example.com"));
    refused("exampleXcom", "hostname_single_label", None);
    accepted("www.example.com", "www.example.com");
    refused("shop.example.com/", "hostname_has_path", Some("shop.example.com"));
    refused("shop.example.com?x", "hostname_has_path", Some("shop.example.com"));
    refused("", "hostname_empty", None);
    refused("  ", "hostname_empty", None);
    refused("a.example.com b.example.com", "hostname_has_blank", Some("a.example.com"));
    refused("shop,example.com", "hostname_bad_character", None);
}

#[test]
fn b77_invisible_characters_are_refused_by_name() {
    for (input, named) in [
        ("shop\u{a0}.example.com", "no-break space (U+00A0)"),
        ("\u{a0}shop.example.com", "no-break space (U+00A0)"),
        ("shop\u{200b}.example.com", "zero-width space (U+200B)"),
        ("shop\u{202e}.example.com", "direction override (U+202E)"),
        ("\u{feff}shop.example.com", "byte order mark (U+FEFF)"),
        ("shop\u{ad}.example.com", "soft hyphen (U+00AD)"),
        ("shop\0.example.com", "control character (U+0000)"),
    ] {
        let e = parse(input).expect_err(input);
        assert_eq!((e.code, e.suggestion.as_deref()), ("hostname_invisible_character", Some("shop.example.com")));
        assert!(e.message.contains(named), "{e}");
        assert!(!e.message.contains(|c| super::refusal::invisible(c).is_some()), "{e}");
    }
}

#[test]
fn the_host_field_of_a_panel_is_relative_to_the_registered_domain() {
    let support = parse("support.acme.co.uk").unwrap();
    assert_eq!(
        (support.registered_domain(), support.relative_to_registered(), support.is_apex()),
        ("acme.co.uk", "support", false)
    );
    let apex = parse("acme.co.uk").unwrap();
    assert_eq!((apex.registered_domain(), apex.relative_to_registered(), apex.is_apex()), ("acme.co.uk", "@", true));
    assert_eq!(parse("a.b.acme.test").unwrap().relative_to_registered(), "a.b");
}

#[test]
fn without_extra_suffixes_test_names_are_refused() {
    let e = Hostname::parse("support.acme.test", &NameRules::default()).unwrap_err();
    assert_eq!(e.code, "hostname_unknown_suffix");
}

/// Names as people write them, in several scripts, and plain noise around them.
fn names() -> impl Strategy<Value = String> {
    let label = prop_oneof![
        "[a-z0-9]([a-z0-9-]{0,10}[a-z0-9])?",
        "[a-zäöüßéñ]{1,12}",
        "[а-я]{1,10}",
        "[一-龥]{1,6}",
        "[א-ת]{1,6}",
        "\\PC{1,6}"
    ];
    (prop::collection::vec(label, 1..4), prop_oneof!["com", "co\\.uk", "test", "рф"])
        .prop_map(|(labels, suffix)| format!("{}.{}", labels.join("."), suffix.replace('\\', "")))
}

#[test]
fn the_names_above_end_at_the_registered_domain() {
    let above = |name: &str| Hostname::trusted(name).above().iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(above("x.support.acme.com"), ["support.acme.com", "acme.com"]);
    assert_eq!(above("shop.acme.co.uk"), ["acme.co.uk"]);
    assert_eq!(above("a.b.github.io"), ["b.github.io"], "a private suffix is one, too");
    for none in ["acme.com", "acme.co.uk", "co.uk", "b.github.io", "test"] {
        assert_eq!(above(none), Vec::<String>::new(), "{none}");
    }
    assert_eq!(above("*.acme.com"), ["acme.com"]);
}

#[test]
fn www_and_apex_belong_together() {
    let of = |name: &str| Hostname::trusted(name).partner().map(|partner| partner.to_string());
    assert_eq!(of("acme.co.uk"), Some("www.acme.co.uk".into()));
    assert_eq!(of("www.acme.co.uk"), Some("acme.co.uk".into()));
    assert_eq!((of("support.acme.com"), of("www.support.acme.com")), (None, None));
    assert_eq!(of("www.com"), Some("www.www.com".into()));
    assert_eq!((of("hk.com"), of("co.uk")), (None, None), "public suffixes");
    assert_eq!(of("www.hk.com"), Some("www.www.hk.com".into()), "an apex below one");
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(input in any::<String>()) {
        let _ = parse(&input);
    }

    #[test]
    fn what_is_accepted_round_trips(input in names()) {
        if let Ok(name) = parse(&input) {
            prop_assert!(name.as_str().len() <= 232);
            prop_assert!(name.as_str().bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'.')));
            prop_assert_eq!(parse(name.as_str()), Ok(name.clone()));
            prop_assert_eq!(parse(&name.display()), Ok(name.clone()));
            prop_assert_eq!(parse(&format!("{}.", name.as_str().to_uppercase())), Ok(name));
        }
    }

    #[test]
    fn a_suggestion_is_always_acceptable(input in "[ a-z0-9._*@:/?\u{200b}-]{0,40}") {
        if let Err(HostnameError { suggestion: Some(suggestion), .. }) = parse(&input) {
            prop_assert!(parse(&suggestion).is_ok(), "{} -> {}", input, suggestion);
        }
    }

    #[test]
    fn the_other_half_of_the_other_half_is_the_name(name in "(www\\.)?[a-z]{1,8}\\.(com|co\\.uk|test)") {
        let name = Hostname::trusted(&name);
        if let Some(partner) = name.partner() {
            prop_assert_eq!(partner.registered_domain(), name.registered_domain());
            prop_assert_eq!(partner.partner(), Some(name));
        }
    }
}
