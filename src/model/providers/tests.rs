use super::*;
use crate::model::evidence::Record;

fn record(name: &str, kind: &str, value: &str) -> Record {
    Record { name: name.into(), host: String::new(), kind: kind.into(), value: value.into(), keep: true }
}

fn whose(hosts: &[&str]) -> Option<&'static str> {
    let hosts: Vec<String> = hosts.iter().map(|h| (*h).to_owned()).collect();
    recognise(&hosts).map(|p| p.name)
}

#[test]
fn providers_are_known_by_their_name_servers() {
    for (host, provider) in [
        ("kate.ns.cloudflare.com", "Cloudflare"),
        ("ns-1234.awsdns-26.org", "Amazon Route 53"),
        ("ns-1.awsdns-00.co.uk", "Amazon Route 53"),
        ("ns37.domaincontrol.com", "GoDaddy"),
        ("dns1.registrar-servers.com", "Namecheap"),
        ("ns-cloud-a1.googledomains.com", "Google Cloud DNS or Squarespace Domains"),
        ("ns1-03.azure-dns.com", "Microsoft Azure DNS"),
        ("ns1.digitalocean.com", "DigitalOcean"),
        ("dns10.ovh.net", "OVHcloud"),
        ("ns-12-a.gandi.net", "Gandi"),
        ("ns1045.ui-dns.biz", "IONOS"),
        ("hydrogen.ns.hetzner.com", "Hetzner"),
        ("ns0.wixdns.net", "Wix"),
        ("ns1.dnsimple.com", "DNSimple"),
        ("dns1.p01.nsone.net", "NS1 or Netlify"),
        ("ns5.linode.com", "Akamai (Linode)"),
        ("ns2.vercel-dns.com", "Vercel"),
        ("ns1.dns-parking.com", "Hostinger"),
        ("curitiba.ns.porkbun.com", "Porkbun"),
        ("ns1.dreamhost.com", "DreamHost"),
        ("ns33.worldnic.com", "Network Solutions"),
        ("ns0.transip.net", "TransIP"),
        ("ns5.inwx.net", "INWX"),
        ("robotns2.second-ns.de", "Hetzner"),
        ("dns200.anycast.me", "OVHcloud"),
        ("f1g1ns1.dnspod.net", "DNSPod (Tencent)"),
        ("dns23.hichina.com", "Alibaba Cloud DNS"),
        ("NS1.Hover.COM.", "Hover"),
    ] {
        assert_eq!(whose(&[host]), Some(provider), "{host}");
    }
}

#[test]
fn strangers_look_alikes_and_mixtures_are_nobody_s() {
    for hosts in [
        &["ns1.acme.example"][..],
        &["notgandi.net"],
        &["ns.cloudflare.com.evil.example"],
        &["awsdns.com"],
        &["xawsdns-1.com"],
        &["cloud-a1.googledomains.com"],
        &["kate.ns.cloudflare.com", "ns1.digitalocean.com"],
        &["kate.ns.cloudflare.com", "ns1.acme.example"],
        &[],
        &[""],
    ] {
        assert_eq!(whose(hosts), None, "{hosts:?}");
    }
    assert_eq!(whose(&["kate.ns.cloudflare.com", "rob.ns.cloudflare.com"]), Some("Cloudflare"));
}

#[test]
fn the_table_is_sound() {
    assert!(PROVIDERS.len() >= 20, "{}", PROVIDERS.len());
    let mut suffixes: Vec<&str> = Vec::new();
    for p in PROVIDERS {
        assert!(
            !p.name_servers.is_empty() && [p.name_label, p.target_label, p.text_label].iter().all(|l| !l.is_empty()),
            "{}",
            p.name
        );
        for pattern in p.name_servers {
            assert!(pattern.contains('.') && *pattern == pattern.to_lowercase(), "{pattern}");
            assert!(!suffixes.contains(pattern), "{pattern} stands twice");
            suffixes.push(pattern);
            // The pattern itself leads to its own row and no earlier one.
            assert_eq!(whose(&[&format!("ns1.{}", pattern.replace('*', "1"))]), Some(p.name), "{pattern}");
        }
    }
}

fn told(provider: &str, zone: &str, record: Record) -> String {
    let p = PROVIDERS.iter().find(|p| p.name == provider).unwrap();
    describe(p, zone, &[record]).steps.remove(0)
}

#[test]
fn each_panel_gets_what_it_wants() {
    let cname = || record("shop.acme.example", "CNAME", "acme.app.example");
    let txt = |zone: &str| record(&format!("_nameplate-challenge.{zone}"), "TXT", "nameplate-verify=ab");
    let alias = || record("acme.example", "ALIAS", "apex.app.example");
    for (provider, zone, record, expected) in [
        (
            "Cloudflare",
            "acme.example",
            cname(),
            "At Cloudflare, in acme.example: type CNAME, Name: shop, Target: acme.app.example, TTL: Auto. Cloudflare adds \
             acme.example to the name by itself. Set its proxy to \"DNS only\".",
        ),
        // A panel's labels differ by the type of the record.
        (
            "Cloudflare",
            "acme.example",
            txt("acme.example"),
            "At Cloudflare, in acme.example: type TXT, Name: _nameplate-challenge, Content: nameplate-verify=ab, TTL: Auto. \
             Cloudflare adds acme.example to the name by itself.",
        ),
        (
            "OVHcloud",
            "acme.example",
            cname(),
            "At OVHcloud, in acme.example: type CNAME, Sub-domain: shop, Target: acme.app.example. (the dot at the end \
             belongs to it). OVHcloud adds acme.example to the name by itself.",
        ),
        (
            "GoDaddy",
            "acme.example",
            txt("acme.example"),
            "At GoDaddy, in acme.example: type TXT, Name: _nameplate-challenge, Value: nameplate-verify=ab, TTL: 1 hour. GoDaddy \
             adds acme.example to the name by itself.",
        ),
        // The zone begins below the registered domain: names are relative to it.
        (
            "GoDaddy",
            "shop.acme.example",
            cname(),
            "At GoDaddy, in shop.acme.example: type CNAME, Name: @, Value: acme.app.example, TTL: 1 hour.",
        ),
        (
            "Amazon Route 53",
            "acme.example",
            record("acme.example", "A", "192.0.2.1"),
            "At Amazon Route 53, in acme.example: type A, leave name empty, value: 192.0.2.1, TTL: 300.",
        ),
        (
            "Hostinger",
            "acme.example",
            alias(),
            "At Hostinger, in acme.example: type CNAME, Name: @, Target: apex.app.example.",
        ),
        // What is not known is left open, and what can go wrong is looked at.
        (
            "HostGator",
            "acme.example",
            cname(),
            "At HostGator, in acme.example: type CNAME, name: shop (in full shop.acme.example), value: acme.app.example. Look at \
             the saved record: its whole name is shop.acme.example, and nothing follows acme.app.example.",
        ),
        (
            "NS1 or Netlify",
            "acme.example",
            txt("acme.example"),
            "At NS1 or Netlify, in acme.example: type TXT, name: _nameplate-challenge (in full _nameplate-challenge.acme.example), \
             value: nameplate-verify=ab. Look at the saved record: its whole name is _nameplate-challenge.acme.example.",
        ),
        (
            "TransIP",
            "acme.example",
            alias(),
            "At TransIP, in acme.example: type ALIAS, name: @, value: apex.app.example. Look at the saved record: nothing follows \
             apex.app.example.",
        ),
        (
            "GoDaddy",
            "acme.example",
            alias(),
            "At GoDaddy, in acme.example: type ALIAS, Name: @, Value: apex.app.example, TTL: 1 hour. Some panels call it ANAME; \
             without either, enter A and AAAA records, or use a name beneath it such as www.acme.example.",
        ),
        (
            "DigitalOcean",
            "acme.example",
            record("acme.example", "A", "192.0.2.1"),
            "At DigitalOcean, in acme.example: type A, name: acme.example itself (@ in most panels, empty in others), value: \
             192.0.2.1.",
        ),
    ] {
        assert_eq!(told(provider, zone, record), expected);
    }
}

#[test]
fn a_final_dot_is_asked_for_only_where_the_panel_is_known_to_need_it() {
    for p in PROVIDERS {
        let step = told(p.name, "acme.example", record("shop.acme.example", "CNAME", "acme.app.example."));
        assert_eq!(step.contains("acme.app.example. ("), p.target == Target::Dotted, "{step}");
        assert!(!step.contains(".."), "{step}");
        assert_eq!(step.contains("nothing follows"), p.target == Target::Unknown, "{step}");
        assert_eq!(step.contains("adds acme.example"), p.adds_zone, "{step}");
        assert_eq!(step.contains("whole name is shop.acme.example"), !p.adds_zone, "{step}");
    }
}

proptest::proptest! {
    #[test]
    fn a_relative_panel_never_gets_the_zone_behind_the_name(labels in proptest::collection::vec("[a-z0-9_-]{1,10}", 1..4)) {
        let relative = labels.join(".");
        let owner = format!("{relative}.acme.example");
        for p in PROVIDERS {
            let said = words::owner(p, "acme.example", &owner);
            let (_, said) = said.split_once(": ").unwrap();
            match p.adds_zone {
                true => proptest::prop_assert_eq!(said, &relative),
                false => proptest::prop_assert_eq!(said, format!("{} (in full {})", relative, owner)),
            }
        }
    }

    #[test]
    fn any_name_server_is_read_without_panic(host in ".{0,60}") {
        let _ = recognise(&[host]);
    }
}
