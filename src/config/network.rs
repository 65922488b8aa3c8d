//! Networks by prefix, such as `10.0.0.0/8`.

use std::fmt;
use std::net::IpAddr;

use super::setting::Setting;

/// A network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

fn bits(address: IpAddr) -> (u128, u8) {
    match address.to_canonical() {
        IpAddr::V4(v4) => (u128::from(u32::from(v4)), 32),
        IpAddr::V6(v6) => (u128::from(v6), 128),
    }
}

impl Network {
    /// Whether `address` lies in it. An IPv4 address inside an IPv6 one counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        let ((network, width), (address, other)) = (bits(self.address), bits(address));
        let free = u32::from(width.saturating_sub(self.prefix));
        width == other && network.checked_shr(free).unwrap_or(0) == address.checked_shr(free).unwrap_or(0)
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl Setting for Network {
    const EXPECTED: &'static str = "an address or network like 10.0.0.0/8";
    fn read(text: &str) -> Option<Self> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address.parse().ok()?, Some(prefix.parse::<u8>().ok()?)),
            None => (text.parse().ok()?, None),
        };
        let width = bits(address).1;
        let prefix = prefix.unwrap_or(width);
        (prefix <= width).then_some(Network { address: address.to_canonical(), prefix })
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_holds_its_addresses() {
        let within = |net: &str, ip: &str| Network::read(net).unwrap().contains(ip.parse().unwrap());
        assert!(within("10.0.0.0/8", "10.200.3.4"));
        assert!(!within("10.0.0.0/8", "11.0.0.1"));
        assert!(within("127.0.0.1", "127.0.0.1"));
        assert!(within("127.0.0.1", "::ffff:127.0.0.1"));
        assert!(!within("0.0.0.0/0", "::1"));
        assert!(within("0.0.0.0/0", "192.0.2.1"));
        assert!(within("2001:db8::/32", "2001:db8:1::1"));
        assert!(within("::/0", "2001:db8::1"));
        assert!(Network::read("10.0.0.0/33").is_none());
        assert!(Network::read("ten").is_none());
    }
}
