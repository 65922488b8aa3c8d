//! The table of DNS hosts, most used first. Each fact has a public source, listed in `docs/decisions/dns-hosts.md`; a row
//! says nothing beyond what was found there, and what it does not say is worded so that it is right at any panel.

/// What stands for the zone itself in a panel's field for the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneItself {
    /// The character `@`.
    At,
    /// Nothing: the field stays empty.
    Empty,
    /// Not known.
    Unknown,
}

/// How a panel reads a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// As a whole name, without a final dot.
    Whole,
    /// As relative to the zone unless a final dot ends it.
    Dotted,
    /// Not known.
    Unknown,
}

/// What can lead the top of a zone, where a CNAME record may not stand, to a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apex {
    /// A CNAME may be entered there; the provider answers with the addresses behind it.
    Flattens,
    /// A type of its own, by the panel's name for it.
    Alias(&'static str),
    /// Not known.
    Unknown,
}

/// A DNS host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Provider {
    /// Its name for people.
    pub name: &'static str,
    /// What its name servers end in; `*` ends a label that goes on.
    pub name_servers: &'static [&'static str],
    /// Whether its panel is known to take names relative to the zone and to add the zone by itself.
    pub adds_zone: bool,
    /// What its panel calls the field for a record's name.
    pub name_label: &'static str,
    /// What its panel calls the field for where a CNAME or ALIAS leads.
    pub target_label: &'static str,
    /// What its panel calls the field for a TXT record's text.
    pub text_label: &'static str,
    /// What stands for the zone itself.
    pub zone_itself: ZoneItself,
    /// How it reads targets.
    pub target: Target,
    /// What the top of a zone takes.
    pub apex: Apex,
    /// What to choose for the time to live, in its panel's words; empty: leave it as it stands.
    pub ttl: &'static str,
    /// Whether records may be proxied there, which hides where they lead.
    pub proxies: bool,
    /// Whether a text is entered with quotation marks around it.
    pub quotes: bool,
    /// Where in the panel a record is added, step by step; `{zone}` stands for the zone. Empty: not known.
    pub menu: &'static [&'static str],
}

/// A host of whose panel nothing is known.
const fn host(name: &'static str, name_servers: &'static [&'static str]) -> Provider {
    Provider {
        name,
        name_servers,
        adds_zone: false,
        name_label: "name",
        target_label: "value",
        text_label: "value",
        zone_itself: ZoneItself::Unknown,
        target: Target::Unknown,
        apex: Apex::Unknown,
        ttl: "",
        proxies: false,
        quotes: false,
        menu: &[],
    }
}

/// A host whose panel takes names relative to the zone.
const fn relative(name: &'static str, name_servers: &'static [&'static str]) -> Provider {
    Provider { adds_zone: true, ..host(name, name_servers) }
}

/// Every host we know.
pub const PROVIDERS: &[Provider] = &[
    Provider {
        name_label: "Name",
        target_label: "Target",
        text_label: "Content",
        zone_itself: ZoneItself::At,
        target: Target::Whole,
        apex: Apex::Flattens,
        ttl: "Auto",
        proxies: true,
        menu: &["{zone}", "DNS", "Records", "Add record"],
        ..relative("Cloudflare", &["ns.cloudflare.com"])
    },
    Provider {
        target_label: "Value",
        text_label: "Value",
        zone_itself: ZoneItself::Empty,
        target: Target::Whole,
        ttl: "300",
        quotes: true,
        menu: &["Hosted zones", "{zone}", "Create record"],
        ..relative("Amazon Route 53", &["awsdns-*.com", "awsdns-*.net", "awsdns-*.org", "awsdns-*.co.uk"])
    },
    Provider {
        name_label: "Name",
        target_label: "Value",
        text_label: "Value",
        zone_itself: ZoneItself::At,
        target: Target::Whole,
        ttl: "1 hour",
        menu: &["Domain Portfolio", "{zone}", "DNS", "Add New Record"],
        ..relative("GoDaddy", &["domaincontrol.com"])
    },
    Provider {
        name_label: "Host",
        target_label: "Value",
        text_label: "Value",
        zone_itself: ZoneItself::At,
        target: Target::Whole,
        menu: &["Domain List", "{zone}", "Manage", "Advanced DNS", "Add New Record"],
        ..relative("Namecheap", &["registrar-servers.com"])
    },
    host("Google Cloud DNS or Squarespace Domains", &["ns-cloud-*.googledomains.com"]),
    Provider {
        name_label: "Host",
        target_label: "Data",
        text_label: "Data",
        menu: &["Domains", "{zone}", "DNS", "Add record"],
        ..host("Squarespace", &["squarespacedns.com"])
    },
    Provider {
        name_label: "Name",
        target_label: "Alias",
        text_label: "Value",
        zone_itself: ZoneItself::At,
        target: Target::Whole,
        menu: &["DNS zones", "{zone}"],
        ..relative("Microsoft Azure DNS", &["azure-dns.com", "azure-dns.net", "azure-dns.org", "azure-dns.info"])
    },
    host("DigitalOcean", &["digitalocean.com"]),
    Provider {
        name_label: "Sub-domain",
        target_label: "Target",
        text_label: "Value",
        zone_itself: ZoneItself::Empty,
        target: Target::Dotted,
        menu: &["Web Cloud", "Domain names", "{zone}", "DNS zone", "Add an entry"],
        ..relative("OVHcloud", &["ovh.net", "ovh.ca", "anycast.me"])
    },
    Provider { zone_itself: ZoneItself::At, target: Target::Dotted, ..relative("Gandi", &["gandi.net"]) },
    Provider {
        name_label: "Host name",
        target_label: "Points to",
        text_label: "Value",
        target: Target::Whole,
        menu: &["Domains & SSL", "{zone}", "DNS", "Add record"],
        ..relative("IONOS", &["ui-dns.com", "ui-dns.org", "ui-dns.de", "ui-dns.biz"])
    },
    Provider {
        name_label: "Name",
        zone_itself: ZoneItself::At,
        target: Target::Dotted,
        ..relative("Hetzner", &["ns.hetzner.com", "ns.hetzner.de", "first-ns.de", "second-ns.de", "second-ns.com"])
    },
    Provider { name_label: "Host Name", target: Target::Whole, ..relative("Wix", &["wixdns.net"]) },
    Provider {
        name_label: "Name",
        target_label: "Content",
        text_label: "Content",
        zone_itself: ZoneItself::Empty,
        target: Target::Whole,
        apex: Apex::Alias("ALIAS"),
        ..relative(
            "DNSimple",
            &["dnsimple.com", "dnsimple-edge.com", "dnsimple-edge.net", "dnsimple-edge.org", "dnsimple-edge.io"],
        )
    },
    // Netlify's zones are served by NS1 under the same names.
    host("NS1 or Netlify", &["nsone.net"]),
    Provider {
        name_label: "Hostname",
        target_label: "Alias to",
        text_label: "Value",
        zone_itself: ZoneItself::Empty,
        target: Target::Whole,
        ttl: "5 minutes",
        menu: &["Domains", "{zone}", "Add a Record"],
        ..relative("Akamai (Linode)", &["linode.com"])
    },
    host("Akamai Edge DNS", &["akam.net"]),
    Provider { apex: Apex::Alias("ALIAS"), ..host("Vercel", &["vercel-dns.com"]) },
    Provider {
        name_label: "Name",
        target_label: "Target",
        zone_itself: ZoneItself::At,
        target: Target::Whole,
        apex: Apex::Flattens,
        ..relative("Hostinger", &["dns-parking.com"])
    },
    host("Bluehost", &["bluehost.com"]),
    host("HostGator", &["hostgator.com"]),
    Provider { apex: Apex::Alias("ALIAS"), ..host("Porkbun", &["porkbun.com"]) },
    Provider {
        name_label: "Host",
        target_label: "Answer",
        text_label: "Answer",
        zone_itself: ZoneItself::Empty,
        target: Target::Whole,
        ttl: "300",
        ..relative("Name.com", &["name.com"])
    },
    host("DreamHost", &["dreamhost.com"]),
    host("Network Solutions", &["worldnic.com"]),
    host("Dynadot", &["dyna-ns.net"]),
    host("INWX", &["inwx.de", "inwx.eu", "inwx.com", "inwx.net"]),
    Provider {
        zone_itself: ZoneItself::At,
        apex: Apex::Alias("ALIAS"),
        ..relative("TransIP", &["transip.net", "transip.nl", "transip.eu"])
    },
    host("Infomaniak", &["infomaniak.ch", "infomaniak.com"]),
    host("WordPress.com", &["wordpress.com"]),
    host("one.com", &["one.com"]),
    Provider {
        name_label: "Hostname",
        zone_itself: ZoneItself::At,
        target: Target::Whole,
        menu: &["{zone}", "DNS"],
        ..relative("Hover", &["hover.com"])
    },
    Provider { target: Target::Dotted, ..host("STRATO", &["rzone.de"]) },
    Provider {
        zone_itself: ZoneItself::At,
        apex: Apex::Alias("ALIAS"),
        ..relative("Alibaba Cloud DNS", &["alidns.com", "hichina.com"])
    },
    Provider { zone_itself: ZoneItself::At, ..relative("DNSPod (Tencent)", &["dnspod.net"]) },
];
