//! URLs of webhooks in every hostile spelling: what we take is read alike by the URL reader of the web.

use nameplate::model::hook_url::{HookHost, HookRules, HookUrl};
use proptest::prelude::*;
use reqwest::Url;

fn pieces() -> impl Strategy<Value = String> {
    let scheme = prop_oneof![4 => Just("https://"), 1 => Just("HTTPS://"), 1 => Just("https:/"), 1 => Just("https:///"), 1 => Just("http://")];
    let user = prop_oneof![6 => Just(""), 1 => Just("user@"), 1 => Just("a:b@"), 1 => Just("@"), 1 => Just("127.0.0.1@")];
    let host = prop_oneof![
        4 => "[a-z]{1,8}\\.[a-z]{1,8}",
        2 => "[a-zA-Z0-9_.-]{1,30}",
        1 => "[0-9a-fx.]{1,16}",
        1 => "\\[[0-9a-f:.]{0,16}\\]",
        1 => Just("xn--bcher-kva.de".to_owned()),
        1 => Just("hooks.acme.com.".to_owned()),
        1 => Just("%68ooks.acme.com".to_owned()),
        1 => "\\PC{1,8}",
    ];
    let port = prop_oneof![4 => Just(String::new()), 2 => Just(":443".to_owned()), 1 => Just(":8443".to_owned()), 2 => ":[0-9]{0,6}", 1 => ":\\PC{0,4}"];
    let rest = prop_oneof![
        3 => "/[a-z0-9/._~%?=&-]{0,20}",
        1 => "[/?#\\\\@:;, \\t\\r\\n-]{0,8}",
        1 => Just("/..\\..//\\127.0.0.1".to_owned()),
        1 => Just("?@127.0.0.1/".to_owned()),
        1 => "\\PC{0,12}",
    ];
    (scheme, user, host, port, rest).prop_map(|(s, u, h, p, r)| format!("{s}{u}{h}{p}{r}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn whatever_is_taken_leads_where_every_other_reader_says(text in pieces()) {
        let Ok(ours) = HookUrl::read(&text, &HookRules::default()) else { return Ok(()) };
        let theirs = Url::parse(&text);
        prop_assert!(theirs.is_ok(), "{text:?} is taken and is no URL to others");
        let theirs = theirs.unwrap();
        let HookHost::Name(name) = &ours.host else { panic!("an address of {text:?}") };
        prop_assert_eq!(theirs.host_str(), Some(name.as_str()), "{:?}", text);
        prop_assert_eq!(theirs.port_or_known_default(), Some(ours.port));
        prop_assert!(theirs.scheme() == "https" && theirs.username().is_empty() && theirs.password().is_none());
        prop_assert!(theirs.fragment().is_none());
        prop_assert!(matches!(theirs.host(), Some(url_host) if url_host.to_string().parse::<std::net::IpAddr>().is_err()));
    }
}

/// Enough of what is made is taken for the property to say something.
#[test]
fn a_plain_url_is_taken() {
    let url = HookUrl::read("HTTPS://Hooks.Acme.com:8443/in?x=1", &HookRules::default()).unwrap();
    assert_eq!((url.authority().as_str(), url.path.as_str()), ("hooks.acme.com:8443", "/in?x=1"));
    assert!(!format!("{url:?}").contains("x=1"), "a path is not printed");
}
