//! Readers of what people and programs type, paste and send.

use http::{HeaderMap, HeaderValue, Uri, Version, header};
use nameplate::acme::retry_after;
use nameplate::config::{Colour, Config, DnsName, Network, Origin, ReturnUrl, ServerPlace, Setting, Sources, WebUrl};
use nameplate::edge::host::requested_host;
use nameplate::model::email;
use nameplate::model::hostname::{Hostname, NameRules};
use nameplate::model::id::{CertificateId, DomainId, TenantId};
use nameplate::model::label::Label;
use nameplate::model::moment::Moment;
use nameplate::model::search;
use nameplate::model::slug::Slug;

use super::Reader;

const NOW: Moment = Moment::from_secs(1_800_000_000);

const CONFIG: &str = "[server]\nlisten = \"127.0.0.1:8080\"\npublic_url = \"https://portal.example\"\n\n[api]\n\
    requests_per_minute = 100\n\n[portal]\nlink_lifetime = \"12h\"\nreturn_urls = [\"https://app.example/back\"]\n\n[database]\nurl = \
    \"sqlite:x.db\"\n\n[vault]\nmaster_key_file = \"/nowhere\"\n\n[routing]\ncanonical_suffix = \"app.example\"\napex_addresses = \
    [\"192.0.2.1\"]\n\n[dns]\nresolvers = [\"192.0.2.53:53\"]\nservers = [\"192.0.2.53=127.0.0.1:5353\"]\ntimeout = \
    \"2s\"\n\n[issuers.main]\ndirectory = \"https://ca.example/dir\"\n\n[edge]\nname = \"one\"\nplain_listen = \"127.0.0.1:80\"\n";

/// What somebody reads who is refused: short, and nothing in it that moves the cursor or turns the text round.
fn fit_to_read(message: &str) {
    assert!(!message.is_empty() && message.chars().count() < 3_000, "{message}");
    let turning = |c: char| c.is_control() && c != '\n' || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    assert!(!message.contains(turning), "{message:?}");
}

fn shown_and_read_again<T: Setting>(text: &str) -> bool {
    let Some(value) = T::read(text) else { return false };
    let shown = value.show();
    assert_eq!(T::read(&shown).map(|v| v.show()), Some(shown), "{text:?}");
    true
}

fn hostname(text: &str) -> bool {
    let rules = NameRules { reserved_zones: vec!["app.example".into()], extra_suffixes: vec!["test".into()] };
    match Hostname::parse(text, &rules) {
        Err(refused) => {
            fit_to_read(&refused.to_string());
            false
        }
        Ok(name) => {
            let text = name.as_str();
            let ldh = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
            assert!(text.len() <= 253, "{text}");
            for (i, label) in text.split('.').enumerate() {
                let star = i == 0 && label == "*";
                assert!(star || (1..=63).contains(&label.len()) && label.bytes().all(ldh), "{text}");
                assert!(!label.starts_with('-') && !label.ends_with('-'), "{text}");
            }
            assert!(
                !text.ends_with("app.example") || text.ends_with("xapp.example") || !text.ends_with(".app.example"),
                "{text}"
            );
            assert_eq!(Hostname::parse(text, &rules).as_ref(), Ok(&name));
            assert_eq!(Hostname::parse(&name.display(), &rules).as_ref(), Ok(&name), "{}", name.display());
            true
        }
    }
}

fn config(text: &str) -> bool {
    let unread = |_: &std::path::Path| Err(std::io::Error::other("no file is read here"));
    match Config::read(Sources::none().file("fuzz", text).files_from(unread)) {
        Ok(_) => true,
        Err(e) => {
            assert!(!e.to_string().is_empty());
            // What holds but for the file that is not there was read to its end.
            e.to_string().lines().filter(|l| !l.trim().is_empty()).count() <= 2
        }
    }
}

fn return_url(text: &str) -> bool {
    let list = ["https://app.example/back", "https://other.example"].map(|u| ReturnUrl::read(u).unwrap());
    if let Err(refused) = ReturnUrl::check(&list, text) {
        fit_to_read(&refused.to_string());
        return false;
    }
    let uri: Uri = text.split('#').next().unwrap().parse().unwrap_or_else(|e| panic!("{text:?}: {e}"));
    let (host, path) = (uri.host().unwrap_or_default(), uri.path());
    assert_eq!(uri.scheme_str(), Some("https"), "{text:?}");
    let below = host == "app.example" && (path == "/back" || path.starts_with("/back/"));
    assert!((below || host == "other.example") && uri.port().is_none(), "{text:?}");
    true
}

fn host(octets: &[u8]) -> bool {
    let Ok(value) = HeaderValue::from_bytes(octets) else { return false };
    let mut headers = HeaderMap::new();
    headers.insert(header::HOST, value);
    let Ok(host) = requested_host(Version::HTTP_11, &headers, &Uri::from_static("/")) else { return false };
    assert!(!host.is_empty() && host.len() <= 253, "{host}");
    assert!(host.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_.".contains(&b)), "{host}");
    true
}

pub fn readers() -> Vec<Reader> {
    let hosts = ["shop.acme.com", "SHOP.acme.com.:8443", "192.0.2.1", "[::1]:80"];
    vec![
        Reader::text(
            "a hostname",
            &[
                "support.acme.com",
                "BÜCHER.example.com",
                "xn--bcher-kva.test",
                "https://shop.acme.co.uk:8443/x?y",
                "*.acme.com",
            ],
            hostname,
        ),
        Reader::text("a tenant's slug", &["acme", "acme-2", "a1"], |text| {
            let Ok(slug) = Slug::parse(text) else { return false };
            assert_eq!(Slug::parse(slug.as_str()).map(|s| s.skeleton()), Ok(slug.skeleton()));
            true
        }),
        Reader::text("a mail address", &["ops@acme.com", "a.b+c@mail.example"], |text| {
            let Ok(address) = email::email(text) else { return false };
            assert!(!address.contains(char::is_control) && address.contains('@'), "{address:?}");
            true
        }),
        Reader::text("a name for people", &["Acme Ltd", "Müller & Söhne"], |text| match Label::NAME.read(text) {
            Ok(name) => {
                assert!(!name.contains(char::is_control), "{name:?}");
                true
            }
            Err(e) => {
                assert!(!e.to_string().is_empty());
                false
            }
        }),
        Reader::text("an id", &["dom_019b0000000070008000000000000001", "ten_019b0000000070008000000000000001"], |text| {
            let read = [
                text.parse::<DomainId>().map(String::from),
                text.parse::<TenantId>().map(String::from),
                text.parse::<CertificateId>().map(String::from),
            ];
            read.into_iter().flatten().all(|id| id == text) && text.len() == 36
        }),
        Reader::text("a search", &["support.acme.com", "https://u:p@support.acme.com:1/x", "bücher", "xn--bch"], |text| {
            let Some(needle) = search::needle(text) else { return false };
            assert!(!needle.is_empty() && needle < search::end_of(&needle));
            true
        }),
        Reader::octets(
            "Retry-After",
            ["3", "Thu, 01 Jan 2032 00:00:00 GMT"].iter().map(|s| s.as_bytes().to_vec()).collect(),
            |octets| match retry_after::parse([octets], NOW) {
                Some(wait) => {
                    assert!(!wait.is_zero());
                    true
                }
                None => false,
            },
        ),
        Reader::text("a configuration", &[CONFIG], config),
        Reader::text("an origin", &["https://portal.example", "http://127.0.0.1:8080"], shown_and_read_again::<Origin>),
        Reader::text("a web address", &["https://help.example/a?b=c"], shown_and_read_again::<WebUrl>),
        Reader::text("a name in DNS", &["app.example"], shown_and_read_again::<DnsName>),
        Reader::text("a network", &["10.0.0.0/8", "2001:db8::/32"], shown_and_read_again::<Network>),
        Reader::text("a colour", &["#12ab9F"], shown_and_read_again::<Colour>),
        Reader::text("where a server is", &["192.0.2.53=127.0.0.1:5353"], shown_and_read_again::<ServerPlace>),
        Reader::text("a length of time", &["500ms", "30s", "7d"], shown_and_read_again::<std::time::Duration>),
        Reader::text("a URL to return to", &["https://app.example/back/x?y#z", "https://other.example/"], return_url),
        Reader::octets("a Host header", hosts.iter().map(|s| s.as_bytes().to_vec()).collect(), host),
    ]
}
