use std::io;
use std::time::Duration;

use super::*;
use crate::model::limits::LimitName;
use crate::model::slug::Slug;

fn variables(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

#[track_caller]
fn problems(sources: Sources<'_>) -> Vec<String> {
    Config::read(sources).expect_err("the configuration should be refused").0.iter().map(ToString::to_string).collect()
}

#[test]
fn nothing_at_all_is_a_configuration() {
    let config = Config::read(Sources::none()).unwrap();
    assert_eq!(config.server.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(config.database.url.expose_str(), Some("sqlite:nameplate.db"));
    assert_eq!(config.issuers.len(), 0);
}

#[test]
fn the_environment_wins_over_the_file() {
    let text = "[server]\nlisten = \"127.0.0.1:1\"\n[dns]\nresolvers = [\"192.0.2.1:53\", \"[2001:db8::1]:53\"]\ntimeout = \"500ms\"\n";
    let sources = Sources::none().file("n.toml", text).variables(variables(&[
        ("NAMEPLATE__SERVER__LISTEN", "127.0.0.1:2"),
        ("NAMEPLATE_TOKEN", "not configuration"),
        ("PATH", "/bin"),
    ]));
    let config = Config::read(sources).unwrap();
    assert_eq!(config.server.listen.port(), 2);
    assert_eq!((config.dns.resolvers.len(), config.dns.timeout), (2, Duration::from_millis(500)));
}

#[test]
fn unknown_keys_are_refused_with_the_nearest_one() {
    let text = "[server]\nlissten = \"x\"\n[sever]\nlisten = \"y\"\n[zebra]\nstripes = 9\n";
    let sources = Sources::none().file("n.toml", text).variables(variables(&[("NAMEPLATE__JOBS__CONCURENCY", "4")]));
    assert_eq!(
        problems(sources),
        [
            "jobs.concurency: there is no such key; did you mean jobs.concurrency? (set in NAMEPLATE__JOBS__CONCURENCY)",
            "server.lissten: there is no such key; did you mean server.listen? (set in n.toml)",
            "sever.listen: there is no such key; did you mean server.listen? (set in n.toml)",
            "zebra.stripes: there is no such key (set in n.toml)",
        ]
    );
}

#[test]
fn wrong_values_are_told_all_at_once_with_key_value_and_expectation() {
    let text = "[server]\nlisten = 8080\npublic_url = \"domains.example.com\"\n[routing]\nmode = \"both\"\n[dns]\ntimeout = \"soon\"\n";
    let told = problems(Sources::none().file("n.toml", text));
    assert_eq!(told.len(), 4, "{told:?}");
    assert!(told[0].starts_with("dns.timeout: \"soon\" is not a time like"), "{}", told[0]);
    assert!(told[1].starts_with("routing.mode: \"both\" is not per_tenant or shared"), "{}", told[1]);
    assert!(told[3].starts_with("server.public_url: \"domains.example.com\" is not an origin"), "{}", told[3]);
}

#[test]
fn a_broken_file_is_told_by_line_and_without_its_content() {
    let told = problems(Sources::none().file("n.toml", "[vault]\nmaster_key = \"hunter2\nx"));
    assert_eq!(told.len(), 1);
    assert!(told[0].contains("line 3") && !told[0].contains("hunter2"), "{}", told[0]);
}

#[test]
fn secrets_come_from_files_and_are_never_shown() {
    let read = |path: &std::path::Path| match path.to_str() {
        Some("/run/key") => Ok("0123\n".to_owned()),
        _ => Err(io::Error::from(io::ErrorKind::NotFound)),
    };
    let text = "[vault]\nmaster_key_file = \"/run/key\"\nolder_keys = \"1:aa,2:bb\"\n";
    let config = Config::read(Sources::none().file("n.toml", text).files_from(read)).unwrap();
    assert_eq!(config.vault.master_key.as_ref().and_then(|k| k.expose_str()), Some("0123"));
    assert_eq!(config.vault.older_keys.len(), 2);
    assert!(!format!("{config:?}").contains("0123"));

    let both = "[vault]\nmaster_key = \"hunter2\"\nmaster_key_file = \"/run/key\"\n[edge]\njoin_token_file = \"/gone\"\n";
    let told = problems(Sources::none().file("n.toml", both).files_from(read));
    assert_eq!(told.len(), 2);
    assert!(told[0].starts_with("edge.join_token_file: the file /gone cannot be read"), "{}", told[0]);
    assert!(told[1].starts_with("vault.master_key: is set, and vault.master_key_file too"), "{}", told[1]);
    assert!(!told.concat().contains("hunter2"));
}

#[test]
fn issuers_are_tables_by_name() {
    let text = "[issuers.le]\ndirectory = \"https://acme.example/dir\"\ncontacts = [\"ops@example.com\"]\n[issuers.other]\npreference = 5\n";
    let told = problems(Sources::none().file("n.toml", text));
    assert_eq!(told, ["issuers.other.directory: is missing; every issuer needs its directory"]);
    let told = problems(Sources::none().file("n.toml", "[issuers.le]\ndirectory = \"acme\"\n"));
    assert_eq!(told.len(), 1, "a wrong directory is told of once: {told:?}");
    let fixed = variables(&[("NAMEPLATE__ISSUERS__OTHER__DIRECTORY", "https://ca.example/d")]);
    let config = Config::read(Sources::none().file("n.toml", text).variables(fixed)).unwrap();
    let names: Vec<_> = config
        .issuers
        .iter()
        .map(|i| (i.name.as_str(), i.preference, i.limits[&LimitName::OrdersPerAccount].burst))
        .collect();
    assert_eq!(names, [("le", 100, 300), ("other", 5, 300)]);
}

#[test]
fn variables_that_name_nothing_or_are_no_text_are_refused_by_name() {
    let sources = Sources::none()
        .variables(variables(&[("NAMEPLATE__", "x")]))
        .unreadable(["NAMEPLATE__LOG__LEVEL".to_owned(), "LC_ALL".to_owned()]);
    let told = problems(sources);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with("NAMEPLATE__: names no key"), "{}", told[0]);
    assert_eq!(told[1], "NAMEPLATE__LOG__LEVEL: the environment variable is not UTF-8 text");
}

#[test]
fn each_role_says_what_it_still_needs() {
    let config = Config::read(Sources::none()).unwrap();
    let missing =
        |role| config.check_for(role).expect_err("should miss keys").0.iter().map(|p| p.key.clone()).collect::<Vec<_>>();
    assert_eq!(missing(Role::Edge), ["edge.name", "edge.upstream"]);
    assert!(missing(Role::Serve).contains(&"server.public_url".to_owned()));
    assert!(!missing(Role::Work).contains(&"server.public_url".to_owned()));
}

#[test]
fn all_that_is_the_platforms_own_is_reserved() {
    let text = "[server]\npublic_url = \"https://Portal.example.com:8443/\"\n[names]\nreserved_zones = [\"corp.example.com\"]\n\
                [routing]\ncanonical_suffix = \"App.example.com.\"\napex_target = \"apex.example.com\"\n";
    let config = Config::read(Sources::none().file("n.toml", text)).unwrap();
    let reserved = config.name_rules().reserved_zones;
    assert_eq!(reserved, ["apex.example.com", "app.example.com", "corp.example.com", "portal.example.com"]);
    let host = config.canonical_host(&Slug::parse("acme").unwrap());
    assert_eq!(host.unwrap().as_str(), "acme.app.example.com");
}

#[test]
fn every_default_reads_as_itself() {
    for (name, text) in
        Config::keys().into_iter().filter_map(|key| Some((key.name, key.default?))).filter(|(_, text)| !text.is_empty())
    {
        let variable = format!("NAMEPLATE__{}", name.to_uppercase().replace('.', "__"));
        let mut given = vec![(variable, text)];
        if name.starts_with("issuers.") {
            given.push(("NAMEPLATE__ISSUERS__NAME__DIRECTORY".into(), "https://ca.example/d".into()));
        }
        assert!(Config::read(Sources::none().variables(given)).is_ok(), "{name}");
    }
}

#[test]
fn the_reference_lists_exactly_the_keys_there_are() {
    let written = include_str!("../../docs/configuration.md");
    let told = reference();
    let (stale, missing): (Vec<&str>, Vec<&str>) = (
        written.lines().filter(|line| !told.contains(line)).collect(),
        told.lines().filter(|line| !written.contains(line)).collect(),
    );
    let remedy = "write it anew: cargo run -- config reference > docs/configuration.md";
    assert!(written == told, "{remedy}\nstale: {stale:#?}\nmissing: {missing:#?}");
}

#[test]
fn the_public_url_is_https_or_on_loopback() {
    for url in ["http://127.0.0.1:8080", "http://[::1]:8080", "http://localhost", "https://domains.example.com"] {
        let config = Config::read(Sources::none().file("n.toml", format!("[server]\npublic_url = \"{url}\"\n"))).unwrap();
        assert_eq!(config.server.public_url.unwrap().as_str(), url);
    }
    for url in
        ["http://domains.example.com", "http://10.0.0.1", "http://localhost.example.com", "http://127.0.0.1.example.com"]
    {
        let told = problems(Sources::none().file("n.toml", format!("[server]\npublic_url = \"{url}\"\n")));
        assert!(
            told.len() == 1 && told[0].starts_with("server.public_url: ") && told[0].contains("in the clear"),
            "{told:?}"
        );
    }
}

#[test]
fn portal_and_brand_are_refused_where_they_cannot_be_used() {
    let text = "[portal]\nlink_lifetime = \"10s\"\nreturn_urls = \"http://app.example.com/\"\n\
        frame_ancestors = \"https://app.example.com/path\"\n[brand]\naccent = \"blue\"\nsupport = \"javascript:alert(1)\"\n\
        name = \"a name that is much too long for the head of a page\"\nlogo_url = \"http://cdn.example/x.png\"\n";
    let told = problems(Sources::none().file("n.toml", text));
    let keys: Vec<&str> = told.iter().map(|line| line.split(':').next().unwrap()).collect();
    let mut expected = [
        "portal.link_lifetime",
        "portal.return_urls",
        "portal.frame_ancestors",
        "brand.accent",
        "brand.support",
        "brand.name",
        "brand.logo_url",
    ];
    expected.sort_unstable();
    assert_eq!(keys, expected, "{told:?}");
}

#[test]
fn limits_of_the_edge_that_would_serve_nobody_are_refused() {
    let text = "[edge]\nconnections = 0\nstreams = 0\nhead_timeout = \"0s\"\nheader_bytes = 10\nheader_count = 100000\n\
                access_log_sample = 0\nproof_secret = \"hunter2\"\nbody_bytes = 0\n";
    let told = problems(Sources::none().file("n.toml", text));
    assert_eq!(told.len(), 7, "{told:#?}");
    assert!(told.iter().all(|line| line.starts_with("edge.") && !line.contains("hunter2")), "{told:#?}");
    let good = "[edge]\nbody_bytes = 5000000000\nidle_timeout = \"1ms\"\naccess_log = \"stdout\"\n";
    let edge = Config::read(Sources::none().file("n.toml", good)).unwrap().edge;
    assert_eq!((edge.limits.body_bytes, edge.limits.idle_timeout), (5_000_000_000, Duration::from_millis(1)));
}
