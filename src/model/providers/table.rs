//! The table of DNS hosts, most used first.

/// How a panel wants names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostField {
    /// Relative to the zone: the panel adds the zone itself, also behind a whole name.
    Relative,
    /// The whole name.
    Whole,
}

/// What stands in for a CNAME at the top of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apex {
    /// A CNAME may be entered there; the provider answers with the addresses behind it.
    Flattens,
    /// A type of its own, by the panel's name for it.
    Alias(&'static str),
    /// Nothing that leads to others: address records are needed.
    Addresses,
}

/// A DNS host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Provider {
    /// Its name for people.
    pub name: &'static str,
    /// What its name servers end in; `*` ends a label that goes on.
    pub name_servers: &'static [&'static str],
    /// What its panel calls the field for a record's name.
    pub host_label: &'static str,
    /// What its panel calls the field for a record's value.
    pub value_label: &'static str,
    /// How it wants names.
    pub host_field: HostField,
    /// What stands for the zone itself in the host field; empty: the field stays empty.
    pub zone_itself: &'static str,
    /// Whether a target without a final dot gets the zone behind it.
    pub final_dot: bool,
    /// What the top of a zone takes.
    pub apex: Apex,
    /// What to choose for the time to live, in its panel's words; empty: leave it as it stands.
    pub ttl: &'static str,
    /// Whether records may be proxied there, which hides where they lead.
    pub proxies: bool,
}

/// Shorthand for a row: most panels are alike in most points.
const fn row(
    name: &'static str,
    name_servers: &'static [&'static str],
    host: &'static str,
    value: &'static str,
) -> Provider {
    Provider {
        name,
        name_servers,
        host_label: host,
        value_label: value,
        host_field: HostField::Relative,
        zone_itself: "@",
        final_dot: false,
        apex: Apex::Addresses,
        ttl: "300",
        proxies: false,
    }
}

/// Every host we know.
pub const PROVIDERS: &[Provider] = &[
    Provider {
        apex: Apex::Flattens,
        ttl: "Auto",
        proxies: true,
        ..row("Cloudflare", &["ns.cloudflare.com"], "Name", "Target")
    },
    Provider {
        zone_itself: "",
        ..row("Amazon Route 53", &["awsdns-*.com", "awsdns-*.net", "awsdns-*.org", "awsdns-*.co.uk"], "Record name", "Value")
    },
    Provider { ttl: "1 hour", ..row("GoDaddy", &["domaincontrol.com"], "Name", "Value") },
    Provider {
        apex: Apex::Alias("ALIAS"),
        ttl: "Automatic",
        ..row("Namecheap", &["registrar-servers.com"], "Host", "Value")
    },
    Provider {
        final_dot: true,
        ..row("Google Cloud DNS or Squarespace Domains", &["ns-cloud-*.googledomains.com"], "Host (or DNS name)", "Data")
    },
    Provider { final_dot: true, ttl: "", ..row("Squarespace", &["squarespacedns.com"], "Host", "Data") },
    Provider {
        ttl: "300 seconds",
        ..row(
            "Microsoft Azure DNS",
            &["azure-dns.com", "azure-dns.net", "azure-dns.org", "azure-dns.info"],
            "Name",
            "Value (Alias for a CNAME)",
        )
    },
    Provider { final_dot: true, ..row("DigitalOcean", &["digitalocean.com"], "Hostname", "Value") },
    Provider {
        zone_itself: "",
        final_dot: true,
        ttl: "Default",
        ..row("OVHcloud", &["ovh.net", "ovh.ca", "anycast.me"], "Sub-domain", "Target")
    },
    Provider { final_dot: true, apex: Apex::Alias("ALIAS"), ..row("Gandi", &["gandi.net"], "Name", "Value") },
    Provider { ttl: "", ..row("IONOS", &["ui-dns.com", "ui-dns.org", "ui-dns.de", "ui-dns.biz"], "Host name", "Value") },
    Provider {
        final_dot: true,
        ..row(
            "Hetzner",
            &["ns.hetzner.com", "ns.hetzner.de", "first-ns.de", "second-ns.de", "second-ns.com"],
            "Name",
            "Value",
        )
    },
    Provider { zone_itself: "", ttl: "", ..row("Wix", &["wixdns.net"], "Host name", "Value") },
    Provider {
        zone_itself: "",
        apex: Apex::Alias("ALIAS"),
        ttl: "5 minutes",
        ..row(
            "DNSimple",
            &["dnsimple.com", "dnsimple-edge.com", "dnsimple-edge.net", "dnsimple-edge.org", "dnsimple-edge.io"],
            "Name",
            "Content",
        )
    },
    Provider { zone_itself: "", apex: Apex::Alias("ALIAS"), ..row("NS1 (IBM)", &["nsone.net"], "Name", "Answer") },
    Provider { zone_itself: "", ttl: "5 minutes", ..row("Akamai (Linode)", &["linode.com"], "Hostname", "Alias to") },
    Provider { zone_itself: "", final_dot: true, ..row("Akamai Edge DNS", &["akam.net"], "Name", "Data") },
    Provider {
        zone_itself: "",
        apex: Apex::Alias("ALIAS"),
        ttl: "60",
        ..row("Vercel", &["vercel-dns.com"], "Name", "Value")
    },
    Provider { apex: Apex::Alias("ALIAS"), ..row("Hostinger", &["dns-parking.com"], "Name", "Target") },
    Provider { ttl: "", ..row("Bluehost", &["bluehost.com"], "Host record", "Points to") },
    Provider {
        host_field: HostField::Whole,
        zone_itself: "",
        ttl: "",
        ..row("HostGator", &["hostgator.com"], "Name", "Record")
    },
    Provider {
        zone_itself: "",
        apex: Apex::Alias("ALIAS"),
        ttl: "600",
        ..row("Porkbun", &["porkbun.com"], "Host", "Answer")
    },
    Provider { zone_itself: "", apex: Apex::Alias("ANAME"), ..row("Name.com", &["name.com"], "Host", "Answer") },
    Provider { zone_itself: "", ttl: "", ..row("DreamHost", &["dreamhost.com"], "Host", "Points to") },
    Provider { ttl: "", ..row("Network Solutions", &["worldnic.com"], "Host", "Refers to") },
    Provider {
        zone_itself: "",
        apex: Apex::Alias("ANAME"),
        ttl: "5 minutes",
        ..row("Dynadot", &["dyna-ns.net"], "Subdomain", "Target")
    },
    Provider {
        zone_itself: "",
        apex: Apex::Alias("ALIAS"),
        ..row("INWX", &["inwx.de", "inwx.eu", "inwx.com", "inwx.ch"], "Name", "Value")
    },
    Provider {
        final_dot: true,
        apex: Apex::Alias("ALIAS"),
        ttl: "5 minutes",
        ..row("TransIP", &["transip.net", "transip.nl", "transip.eu"], "Name", "Value")
    },
    Provider {
        zone_itself: "",
        ttl: "5 minutes",
        ..row("Infomaniak", &["infomaniak.ch", "infomaniak.com"], "Source", "Target")
    },
    Provider { ttl: "", ..row("WordPress.com", &["wordpress.com"], "Name", "Alias of") },
    Provider { zone_itself: "", ttl: "", ..row("one.com", &["one.com"], "Hostname", "Value") },
    Provider { ttl: "", ..row("Hover", &["hover.com"], "Hostname", "Target name") },
    Provider { zone_itself: "", final_dot: true, ttl: "", ..row("STRATO", &["rzone.de"], "Prefix", "Value") },
    Provider { ttl: "10 minutes", ..row("Alibaba Cloud DNS", &["alidns.com", "hichina.com"], "Hostname", "Value") },
    Provider { ttl: "600", ..row("DNSPod (Tencent)", &["dnspod.net", "dnspod.com"], "Host", "Value") },
];
