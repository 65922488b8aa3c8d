//! Faults that people met in the field, each named after its case.

use nameplate::model::evidence::Tie;
use nameplate::sandbox::dns::{Fault, How};

use crate::support::dns_ask::{ACCOUNT, VALUE, caa, code, finding, ownership, routing, world};

const LABEL: &str = "_nameplate-challenge.shop.example.com. 300 IN TXT";

#[tokio::test]
async fn b01_strings_of_one_record_are_joined_and_those_of_different_records_never() {
    let (front, back) = VALUE.split_at(20);
    let ask = ownership("shop.example.com");
    assert_eq!(code(&world(&[&format!("{LABEL} \"{front}\" \"{back}\"")]), &ask).await, "txt_ok");
    let two = world(&[&format!("{LABEL} \"{front}\""), &format!("{LABEL} \"{back}\"")]);
    assert_eq!(code(&two, &ask).await, "txt_value_truncated");
    // 255 + 40 octets, as servers cut long values.
    let long = format!("nameplate-verify={}", "ab".repeat(139));
    let (front, back) = long.split_at(255);
    let mut ask = ask;
    ask.ownership.as_mut().unwrap().value = long.clone();
    assert_eq!((front.len(), back.len()), (255, 40));
    assert_eq!(code(&world(&[&format!("{LABEL} \"{front}\" \"{back}\"")]), &ask).await, "txt_ok");
}

#[tokio::test]
async fn b02_our_value_counts_wherever_it_stands_among_others() {
    let values = ["v=spf1 -all", "other-vendor=1", "nameplate-verify=00000000000000000000000000000000", VALUE];
    let ask = ownership("shop.example.com");
    for first in 0..values.len() {
        let lines: Vec<String> =
            (0..values.len()).map(|i| format!("{LABEL} \"{}\"", values[(first + i) % values.len()])).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        assert_eq!(code(&world(&lines), &ask).await, "txt_ok");
    }
    let without: Vec<String> = values[..2].iter().map(|v| format!("{LABEL} \"{v}\"")).collect();
    let seen = finding(&world(&[&without[0], &without[1]]), &ask).await;
    assert_eq!(seen.reason.code(), "txt_missing");
    let shown = seen.observed.join("\n");
    assert!(shown.contains("v=spf1 -all") && shown.contains("other-vendor=1"), "{shown}");
    let stale = world(&[&format!("{LABEL} \"{}\"", values[0]), &format!("{LABEL} \"{}\"", values[2])]);
    assert_eq!(code(&stale, &ask).await, "txt_stale_value");
}

#[tokio::test]
async fn b04_a_misplaced_record_is_found_and_the_host_field_named() {
    let ask = ownership("shop.example.com");
    for (line, expected) in [
        ("_nameplate-challenge.shop.example.com.example.com.", "txt_zone_appended"),
        ("_nameplate-challenge.example.com.", "txt_wrong_name"),
        ("nameplate-challenge.shop.example.com.", "txt_wrong_name"),
    ] {
        let seen = finding(&world(&[&format!("{line} 300 IN TXT \"{VALUE}\"")]), &ask).await;
        assert_eq!(seen.reason.code(), expected, "{line}");
        assert!(seen.advice.contains("_nameplate-challenge.shop."), "{}", seen.advice);
        assert!(seen.advice.contains(line.trim_end_matches('.')), "{}", seen.advice);
        assert_eq!(seen.record_to_publish[0].host, "_nameplate-challenge.shop");
    }
}

#[tokio::test]
async fn b05_what_panels_do_to_a_value_is_forgiven_outside_and_not_inside() {
    let ask = ownership("shop.example.com");
    for (written, expected) in [
        (VALUE.to_uppercase(), "txt_ok_normalised"),
        (format!("{VALUE} "), "txt_ok_normalised"),
        (format!("{VALUE}\\010"), "txt_ok_normalised"),
        (format!("\\\"{VALUE}\\\""), "txt_ok_normalised"),
        (VALUE.replace("3f9a", "3f 9a"), "txt_value_mismatch"),
    ] {
        assert_eq!(code(&world(&[&format!("{LABEL} \"{written}\"")]), &ask).await, expected, "{written}");
    }
}

#[tokio::test]
async fn b07_a_record_added_after_a_look_is_seen_by_the_next() {
    let (world, ask) = (world(&[]), ownership("shop.example.com"));
    assert_eq!(code(&world, &ask).await, "txt_missing");
    world.add(&format!("{LABEL} \"{VALUE}\"")).unwrap();
    assert_eq!(code(&world, &ask).await, "txt_ok");
    world.remove(&format!("{LABEL} \"{VALUE}\"")).unwrap();
    assert_eq!(code(&world, &ask).await, "txt_missing");
}

#[tokio::test]
async fn b09_final_dots_and_capitals_do_not_matter_and_suffixes_do() {
    let mut ask = routing("shop.example.com");
    let right = world(&["shop.example.com. 300 IN CNAME EDGE.Platform.Example."]);
    assert_eq!(code(&right, &ask).await, "cname_ok");
    ask.routing.as_mut().unwrap().accepted_targets = vec!["Edge.PLATFORM.example".to_owned()];
    assert_eq!(code(&right, &ask).await, "cname_ok");
    let longer = world(&["shop.example.com. 300 IN CNAME edge.platform.example.evil.example."]);
    assert_eq!(code(&longer, &ask).await, "cname_points_elsewhere");
}

#[tokio::test]
async fn b12_an_alias_to_a_missing_target_of_ours_is_no_departure() {
    let seen =
        finding(&world(&["shop.example.com. 300 IN CNAME old-edge.platform.example."]), &routing("shop.example.com")).await;
    assert_eq!(seen.reason.code(), "platform_target_broken");
    assert_eq!(seen.reason.tie(), Tie::Silent);
    assert!(seen.observed.iter().any(|o| o.contains("old-edge.platform.example")), "{:?}", seen.observed);
}

#[tokio::test]
async fn b13_four_kinds_of_no_are_kept_apart() {
    let world = world(&["shop.example.com. 300 IN CNAME edge.platform.example."]);
    let ask = routing("shop.example.com");
    for (how, tie) in [
        (How::ServFail, Tie::Silent),
        (How::Timeout, Tie::Silent),
        (How::Refused, Tie::Silent),
        (How::Bogus, Tie::Silent),
        (How::NxDomain, Tie::Gone),
    ] {
        let fault = Fault { name: "shop.example.com".to_owned(), kind: None, how, below: true };
        world.set_faults(vec![fault]);
        assert_eq!(finding(&world, &ask).await.reason.tie(), tie, "{how:?}");
    }
}

#[tokio::test]
async fn b19_the_first_set_ends_the_climb() {
    let above = finding(&world(&["example.com. 300 IN CAA 0 issue \"other.example\""]), &caa("a.b.example.com")).await;
    assert_eq!((above.reason.code(), above.found_at.as_deref()), ("caa_excludes_ca", Some("example.com")));
    let nearer = world(&["b.example.com. 300 IN CAA 0 issue \"ca.example\"", "example.com. 300 IN CAA 0 issue \";\""]);
    let nearer = finding(&nearer, &caa("a.b.example.com")).await;
    assert_eq!((nearer.reason.code(), nearer.found_at.as_deref()), ("caa_permits", Some("b.example.com")));
}

#[tokio::test]
async fn b20_the_target_s_own_set_counts_and_its_parents_do_not() {
    let alias = "shop.example.com. 300 IN CNAME edge.platform.example.";
    let ours = world(&[alias, "edge.platform.example. 300 IN CAA 0 issue \"other.example\""]);
    let ours = finding(&ours, &caa("shop.example.com")).await;
    assert_eq!((ours.reason.code(), ours.found_via.as_deref()), ("caa_target_excludes_ca", Some("edge.platform.example")));
    let parent = world(&[alias, "platform.example. 300 IN CAA 0 issue \";\""]);
    assert_eq!(code(&parent, &caa("shop.example.com")).await, "caa_absent");
}

#[tokio::test]
async fn b21_issuewild_is_for_wildcards_and_issue_for_both_without_it() {
    let issue = "example.com. 300 IN CAA 0 issue \"ca.example\"";
    let nobody = "example.com. 300 IN CAA 0 issuewild \";\"";
    let other = "example.com. 300 IN CAA 0 issuewild \"other.example\"";
    for (lines, plain, wild) in [
        (vec![issue], "caa_permits", "caa_permits"),
        (vec![issue, nobody], "caa_permits", "caa_forbids_wildcard"),
        (vec![other], "caa_no_restriction", "caa_wildcard_excludes_ca"),
    ] {
        let world = world(&lines);
        assert_eq!(code(&world, &caa("example.com")).await, plain, "{lines:?}");
        assert_eq!(code(&world, &caa("*.example.com")).await, wild, "{lines:?}");
    }
}

#[tokio::test]
async fn b22_empty_and_malformed_issuers_forbid_and_one_good_record_is_enough() {
    for (values, expected) in [
        (vec![";"], "caa_forbids_all"),
        (vec![""], "caa_forbids_all"),
        (vec!["%%%"], "caa_malformed"),
        (vec![";", "ca.example"], "caa_permits"),
        (vec![";", "%%%"], "caa_malformed"),
        (vec![";", "other.example"], "caa_excludes_ca"),
    ] {
        let lines: Vec<String> = values.iter().map(|v| format!("example.com. 300 IN CAA 0 issue \"{v}\"")).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        assert_eq!(code(&world(&lines), &caa("shop.example.com")).await, expected, "{values:?}");
    }
}

#[tokio::test]
async fn b24_tags_match_in_any_case_and_issuers_in_the_ca_s_own() {
    let tag = world(&["example.com. 300 IN CAA 0 ISSUE \"other.example\""]);
    assert_eq!(code(&tag, &caa("shop.example.com")).await, "caa_excludes_ca");
    let issuer = world(&["example.com. 300 IN CAA 0 issue \"CA.EXAMPLE\""]);
    assert_eq!(code(&issuer, &caa("shop.example.com")).await, "caa_issuer_spelling");
}

#[tokio::test]
async fn b25_account_and_method_are_held_to() {
    for (value, expected) in [
        (format!("ca.example; accounturi={ACCOUNT}"), "caa_permits"),
        ("ca.example; accounturi=https://ca.example/acct/2".to_owned(), "caa_account_mismatch"),
        (format!("ca.example; accounturi={ACCOUNT}; accounturi={ACCOUNT}"), "caa_param_unsatisfiable"),
        ("ca.example; validationmethods=dns-01".to_owned(), "caa_method_not_allowed"),
        ("ca.example; validationmethods=dns-01,http-01".to_owned(), "caa_permits"),
        ("ca.example; AccountURI=https://ca.example/acct/2".to_owned(), "caa_permits"),
        ("ca.example; validation-methods=http-01".to_owned(), "caa_malformed"),
    ] {
        let world = world(&[&format!("example.com. 300 IN CAA 0 issue \"{value}\"")]);
        assert_eq!(code(&world, &caa("shop.example.com")).await, expected, "{value}");
    }
}

#[tokio::test]
async fn b26_failures_on_the_way_stop_the_climb_and_failures_above_do_not() {
    let world = world(&["shop.example.com. 300 IN A 203.0.113.10", "example.com. 300 IN CAA 0 issue \"ca.example\""]);
    let ask = caa("shop.example.com");
    for (name, how, expected) in [
        ("shop.example.com", How::NxDomain, "caa_permits"),
        ("shop.example.com", How::ServFail, "caa_lookup_failed"),
        ("shop.example.com", How::Timeout, "caa_lookup_failed"),
        ("shop.example.com", How::NotImp, "caa_type_unsupported"),
        ("com", How::ServFail, "caa_permits"),
    ] {
        let kind = nameplate::model::look::Kind::Caa;
        world.set_faults(vec![Fault { name: name.to_owned(), kind: Some(kind), how, below: false }]);
        assert_eq!(code(&world, &ask).await, expected, "{name} {how:?}");
    }
}

#[tokio::test]
async fn what_explains_a_verdict_is_shown_with_real_names() {
    let wild = world(&["*.example.com. 300 IN CNAME edge.platform.example."]);
    let covered = finding(&wild, &ownership("shop.example.com")).await;
    assert_eq!(covered.reason.code(), "txt_covered_by_wildcard_cname");
    assert!(covered.advice.contains("*.example.com,"), "{}", covered.advice);
    let through = finding(&wild, &routing("shop.example.com")).await;
    assert_eq!(through.reason.code(), "cname_ok_wildcard");
    assert!(through.advice.contains("wildcard *.example.com,"), "{}", through.advice);

    let loops = world(&["shop.example.com. IN CNAME www.example.com.", "www.example.com. IN CNAME shop.example.com."]);
    let loops = finding(&loops, &routing("shop.example.com")).await;
    let shown = loops.observed.join("\n");
    assert!(shown.contains("shop.example.com → www.example.com → shop.example.com"), "{shown}");

    let set = world(&["example.com. 300 IN CAA 0 issue \"other.example\""]);
    let set = finding(&set, &caa("shop.example.com")).await;
    assert_eq!(set.observed, ["example.com CAA 0 issue \"other.example\""]);
    assert_eq!(set.seen_by.len(), 3);
    assert!(set.advice.contains("example.com CAA 0 issue \"ca.example\""), "{}", set.advice);
}

/// A world whose customer zone is served by these servers.
fn hosted_at(servers: &[&str], lines: &[&str]) -> nameplate::sandbox::dns::ZoneStore {
    let world = world(lines);
    world.remove("example.com. IN NS ns1.dns.example.").unwrap();
    for (i, server) in servers.iter().enumerate() {
        let zone = server.split_once('.').unwrap().1;
        world.add_zone(
            zone,
            server,
            std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 60 + u8::try_from(i).unwrap())),
        );
        world.add(&format!("example.com. 300 IN NS {server}.")).unwrap();
    }
    world
}

#[tokio::test]
async fn advice_is_worded_for_the_host_that_the_name_servers_show() {
    let seen =
        finding(&hosted_at(&["kate.ns.cloudflare.com", "rob.ns.cloudflare.com"], &[]), &routing("shop.example.com")).await;
    let host = seen.dns_host.unwrap();
    assert_eq!((host.provider.as_str(), host.zone.as_str()), ("Cloudflare", "example.com"));
    let step = "At Cloudflare, in example.com: type CNAME, Name: shop, Target: edge.platform.example, TTL: Auto. Cloudflare adds \
                example.com to the name by itself. Set its proxy to \"DNS only\".";
    assert_eq!(host.steps, [step]);
    assert!(seen.advice.ends_with(step), "{}", seen.advice);
    // Two hosts, or one that nobody knows: neutral.
    for servers in [&["kate.ns.cloudflare.com", "ns1.own.example"][..], &["ns1.own.example"]] {
        let seen = finding(&hosted_at(servers, &[]), &routing("shop.example.com")).await;
        assert_eq!(seen.dns_host, None);
        assert!(
            seen.advice.ends_with("add a CNAME record (host field shop) that points to edge.platform.example."),
            "{}",
            seen.advice
        );
    }
    // What is right needs no steps in the advice; the host is still named.
    let alias = "shop.example.com. 300 IN CNAME edge.platform.example.";
    let seen = finding(&hosted_at(&["ns1.digitalocean.com"], &[alias]), &routing("shop.example.com")).await;
    assert_eq!(seen.reason.code(), "cname_ok");
    assert!(seen.advice.ends_with("nothing needs to change."), "{}", seen.advice);
    assert_eq!(seen.dns_host.unwrap().provider, "DigitalOcean");
}

#[tokio::test]
async fn host_fields_are_relative_to_the_zone_that_holds_the_name() {
    let world = world(&[]);
    world.add_zone("shop.example.com", "ns1.p05.nsone.net", std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 70)));
    let seen = finding(&world, &ownership("eu.shop.example.com")).await;
    assert_eq!(seen.record_to_publish[0].host, "_nameplate-challenge.eu");
    assert!(
        seen.advice
            .contains("in shop.example.com: type TXT, name: _nameplate-challenge.eu (in full _nameplate-challenge.eu.shop"),
        "{}",
        seen.advice
    );
}

#[tokio::test]
async fn who_publishes_the_wrong_target_is_named_and_a_changed_one_is_waited_for() {
    let old = "shop.example.com. 300 IN CNAME old.example.net.";
    let ask = routing("shop.example.com");
    let seen = finding(&world(&[old]), &ask).await;
    let expected = "We see that shop.example.com points to old.example.net, published at ns1.dns.example, but it should point to \
                    edge.platform.example; change the target of the CNAME record to edge.platform.example.";
    assert_eq!((seen.reason.code(), seen.advice.as_str()), ("cname_points_elsewhere", expected));
    // The zone has the right one; every resolver still holds the old answer.
    let world = world(&["shop.example.com. 300 IN CNAME edge.platform.example."]);
    let lines = [
        "example.com. 300 IN SOA ns1.dns.example. h.dns.example. 1 7200 900 1209600 60",
        "example.com. 300 IN NS ns1.dns.example.",
        "ns1.dns.example. 300 IN A 192.0.2.1",
        old,
    ];
    for label in ["own-a", "own-b", "own-c"] {
        let records: Vec<_> = lines.iter().map(|l| nameplate::dns::world::line::parse(l).unwrap()).collect();
        let view = nameplate::sandbox::dns::View::of(records, Vec::new());
        world.set_view(nameplate::sandbox::dns::Who::Resolver(label.to_owned()), Some(view));
    }
    let seen = finding(&world, &ask).await;
    assert_eq!((seen.reason.code(), seen.reason.tie()), ("cname_propagating", nameplate::model::evidence::Tie::Silent));
    assert!(seen.advice.contains("old answers may live for 5 minutes more"), "{}", seen.advice);
}

#[test]
fn evidence_from_before_hosts_were_recognised_still_reads() {
    let before = r#"{"check":"routing","reason":"cname_missing","expected":"","observed":[],"seen_by":[],"advice":"",
        "record_to_publish":[],"looked_at":1800000000000000}"#;
    let read: nameplate::model::evidence::Evidence = serde_json::from_str(before).unwrap();
    assert_eq!(read.finding.dns_host, None);
    let written = serde_json::to_value(&read).unwrap();
    assert!(written.get("dns_host").is_none(), "{written}");
}
