//! Which addresses may be asked: the global ones, and loopback where a sandbox says so.
//!
//! The ranges are those of the special-purpose registries (RFC 6890 and its successors). An IPv4 address inside an IPv6 one
//! is judged as what it leads to, whatever its spelling.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address that is not asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{address} is {range}, where no public name leads; publish an address that the Internet can reach")]
pub struct Refusal {
    /// The address as given.
    pub address: IpAddr,
    /// What kind of address it is.
    pub range: &'static str,
}

/// IPv4 ranges that are not global: first address, prefix length, what they are.
const SPECIAL_V4: [(Ipv4Addr, u32, &str); 16] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8, "an address of \"this network\""),
    (Ipv4Addr::new(10, 0, 0, 0), 8, "a private address"),
    (Ipv4Addr::new(100, 64, 0, 0), 10, "a shared address behind a provider's NAT"),
    (Ipv4Addr::new(127, 0, 0, 0), 8, "a loopback address"),
    (Ipv4Addr::new(169, 254, 0, 0), 16, "a link-local address"),
    (Ipv4Addr::new(172, 16, 0, 0), 12, "a private address"),
    (Ipv4Addr::new(192, 0, 0, 0), 24, "an address of the protocol registry"),
    (Ipv4Addr::new(192, 0, 2, 0), 24, "an address for documentation"),
    (Ipv4Addr::new(192, 88, 99, 0), 24, "a retired 6to4 relay"),
    (Ipv4Addr::new(192, 168, 0, 0), 16, "a private address"),
    (Ipv4Addr::new(198, 18, 0, 0), 15, "an address for benchmarks"),
    (Ipv4Addr::new(198, 51, 100, 0), 24, "an address for documentation"),
    (Ipv4Addr::new(203, 0, 113, 0), 24, "an address for documentation"),
    (Ipv4Addr::new(224, 0, 0, 0), 4, "a multicast address"),
    (Ipv4Addr::new(255, 255, 255, 255), 32, "the broadcast address"),
    (Ipv4Addr::new(240, 0, 0, 0), 4, "a reserved address"),
];

/// Ranges inside the global unicast space of IPv6 (2000::/3) that are not global all the same.
const SPECIAL_V6: [(Ipv6Addr, u32, &str); 4] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, "an address of the protocol registry"),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, "an address for documentation"),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, "a retired 6to4 address"),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, "an address for documentation"),
];

/// The address to connect to, if it may be asked. `loopback` permits 127.0.0.0/8 and ::1.
pub fn judge(address: IpAddr, loopback: bool) -> Result<IpAddr, Refusal> {
    let meant = unwrapped(address);
    if loopback && meant.is_loopback() {
        return Ok(meant);
    }
    match special(meant) {
        None => Ok(meant),
        Some(range) => Err(Refusal { address, range }),
    }
}

/// An IPv4 address that comes as an IPv6 one: mapped (::ffff:0:0/96) or through the well-known NAT64 prefix (64:ff9b::/96).
fn unwrapped(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else { return address };
    let [.., a, b, c, d] = v6.octets();
    match v6.segments() {
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => IpAddr::V4(Ipv4Addr::new(a, b, c, d)),
        _ => address,
    }
}

fn special(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(v4) => {
            let inside = |first: Ipv4Addr, length: u32| (v4.to_bits() ^ first.to_bits()) >> (32 - length) == 0;
            SPECIAL_V4.iter().find(|(first, length, _)| inside(*first, *length)).map(|(_, _, range)| *range)
        }
        IpAddr::V6(v6) if v6.is_loopback() => Some("a loopback address"),
        IpAddr::V6(v6) if v6.is_unspecified() => Some("the unspecified address"),
        IpAddr::V6(v6) if v6.is_multicast() => Some("a multicast address"),
        IpAddr::V6(v6) if v6.is_unicast_link_local() => Some("a link-local address"),
        IpAddr::V6(v6) if v6.is_unique_local() => Some("a private address"),
        IpAddr::V6(v6) if v6.segments()[0] >> 13 != 1 => Some("outside the global addresses of IPv6"),
        IpAddr::V6(v6) => {
            let inside = |first: Ipv6Addr, length: u32| (v6.to_bits() ^ first.to_bits()) >> (128 - length) == 0;
            SPECIAL_V6.iter().find(|(first, length, _)| inside(*first, *length)).map(|(_, _, range)| *range)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn refused(text: &str) -> bool {
        judge(text.parse().unwrap(), false).is_err()
    }

    #[test]
    fn special_addresses_are_refused_in_every_spelling() {
        for text in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.9.9.9",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "239.1.1.1",
            "240.0.0.1",
            "255.255.255.255",
        ] {
            assert!(refused(text), "{text}");
            assert!(refused(&format!("::ffff:{text}")), "mapped {text}");
            assert!(refused(&format!("64:ff9b::{text}")), "NAT64 {text}");
            assert!(refused(&format!("::{text}")), "compatible {text}");
        }
        for text in [
            "::",
            "::1",
            "fe80::1",
            "fec0::1",
            "fc00::1",
            "fd12::1",
            "ff02::1",
            "100::1",
            "64:ff9b:1::1",
            "2001::1",
            "2001:10::1",
            "2001:db8::1",
            "2002:a00:1::",
            "3fff::1",
            "5f00::1",
            "4000::1",
        ] {
            assert!(refused(text), "{text}");
        }
    }

    #[test]
    fn global_addresses_pass_and_a_mapped_one_is_asked_as_what_it_is() {
        for text in ["1.1.1.1", "100.63.255.255", "100.128.0.1", "172.32.0.1", "192.0.1.1", "198.20.0.1", "223.255.255.255"]
        {
            let v4: IpAddr = text.parse().unwrap();
            assert_eq!(judge(v4, false), Ok(v4));
            assert_eq!(judge(format!("::ffff:{text}").parse().unwrap(), false), Ok(v4));
        }
        for text in ["2606:4700::1111", "2a00:1450::1", "2001:200::1"] {
            assert!(!refused(text), "{text}");
        }
    }

    #[test]
    fn loopback_is_the_only_exception() {
        for text in ["127.0.0.1", "127.8.0.1", "::1", "::ffff:127.0.0.1"] {
            assert!(judge(text.parse().unwrap(), true).is_ok(), "{text}");
        }
        for text in ["10.0.0.1", "0.0.0.0", "::", "169.254.169.254"] {
            assert!(judge(text.parse().unwrap(), true).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_passes_is_global_unicast_and_judged_alike_when_mapped(bits: u32) {
            let v4 = Ipv4Addr::from_bits(bits);
            let plain = judge(IpAddr::V4(v4), false);
            let mapped = judge(IpAddr::V6(v4.to_ipv6_mapped()), false);
            prop_assert_eq!(plain.is_ok(), mapped.is_ok());
            if let Ok(IpAddr::V4(passed)) = plain {
                prop_assert!(!passed.is_private() && !passed.is_loopback() && !passed.is_multicast());
                prop_assert!(!passed.is_link_local() && !passed.is_documentation() && !passed.is_broadcast());
            }
        }
    }
}
