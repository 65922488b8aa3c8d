//! What is capped, and by how much.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use crate::model::id::TenantId;
use crate::model::look::Lane;
use crate::model::traffic::Cap;

/// A look asks each server of its zone about so many questions, those that resolvers pass on included.
const QUESTIONS_A_LOOK: u32 = 5;

/// The caps of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// All looks.
    pub looks: Cap,
    /// Looks at names of one registered domain.
    pub zone: Cap,
    /// Looks for one tenant: as many that somebody pressed a button for, and as many others.
    pub tenant: Cap,
    /// Looks at imported names that wait for their records.
    pub imports: Cap,
    /// All packets, those to our own resolvers included.
    pub packets: Cap,
    /// Packets to one name server.
    pub server: Cap,
}

impl Default for Caps {
    fn default() -> Self {
        Caps {
            looks: Cap::new(200, 64),
            zone: Cap::new(20, 8),
            tenant: Cap::new(50, 16),
            imports: Cap::per_second(10),
            packets: Cap::per_second(5_000),
            server: Cap::new(100, 32),
        }
    }
}

/// A name server as it is capped: where it is asked. Whoever has an IPv6 network has all addresses in it, so that is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ServerKey(IpAddr, u16);

impl ServerKey {
    pub fn of(place: SocketAddr) -> Self {
        let address = match place.ip() {
            IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
                Some(v4) => IpAddr::V4(v4),
                None => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64)),
            },
            v4 @ IpAddr::V4(_) => v4,
        };
        ServerKey(address, place.port())
    }
}

/// What a look falls under.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum LookKey {
    /// All of them.
    All,
    /// All that nobody pressed a button for.
    Unasked,
    /// Imported names.
    Imports,
    /// One registered domain.
    Zone(String),
    /// The same, but for what somebody pressed a button for.
    ZoneUnasked(String),
    /// One tenant, by whether somebody pressed a button.
    Tenant(TenantId, bool),
    /// One name server behind the zone, as far as it is known.
    Behind(ServerKey),
}

/// What a packet falls under.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum PacketKey {
    /// All of them.
    All,
    /// One name server.
    Server(ServerKey),
}

impl Caps {
    pub(super) fn of_look(
        &self,
        lane: Lane,
        tenant: Option<&TenantId>,
        zone: &str,
        servers: impl IntoIterator<Item = ServerKey>,
    ) -> Vec<(LookKey, Cap)> {
        let asked = lane == Lane::CheckNow;
        let mut all = vec![(LookKey::All, self.looks), (LookKey::Zone(zone.to_owned()), self.zone)];
        if !asked {
            all.push((LookKey::Unasked, most_of(self.looks)));
            all.push((LookKey::ZoneUnasked(zone.to_owned()), most_of(self.zone)));
        }
        if lane == Lane::Bulk {
            all.push((LookKey::Imports, self.imports));
        }
        all.extend(tenant.map(|t| (LookKey::Tenant(t.clone(), asked), self.tenant)));
        let behind = Cap { per_second: self.server.per_second.map(|n| (n / QUESTIONS_A_LOOK).max(1)), at_once: None };
        all.extend(servers.into_iter().map(|s| (LookKey::Behind(s), behind)));
        all
    }

    pub(super) fn of_question(&self) -> Vec<(PacketKey, Cap)> {
        vec![(PacketKey::All, self.packets)]
    }

    pub(super) fn of_packet(&self, server: ServerKey) -> Vec<(PacketKey, Cap)> {
        vec![(PacketKey::All, self.packets), (PacketKey::Server(server), self.server)]
    }
}

/// The places that are not kept for "check now": three of four.
fn most_of(cap: Cap) -> Cap {
    Cap { per_second: None, at_once: cap.at_once.map(|n| (n - n / 4).max(1)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_machine_is_one_server_whatever_it_calls_itself() {
        let key = |text: &str| ServerKey::of(text.parse().unwrap());
        assert_eq!(key("[2001:db8:1:2::1]:53"), key("[2001:db8:1:2:ffff::9]:53"));
        assert_ne!(key("[2001:db8:1:2::1]:53"), key("[2001:db8:1:3::1]:53"));
        assert_eq!(key("[::ffff:192.0.2.1]:53"), key("192.0.2.1:53"));
        assert_ne!(key("192.0.2.1:53"), key("192.0.2.2:53"));
        assert_ne!(key("127.0.0.1:53"), key("127.0.0.1:54"), "on one machine, each port is a server of its own");
    }

    #[test]
    fn only_who_pressed_the_button_may_have_the_last_places() {
        let caps = Caps::default();
        let tenant = TenantId::mint(crate::model::moment::Moment::from_secs(1), [1; 10]);
        let places = |lane| {
            let keys = caps.of_look(lane, Some(&tenant), "example.com", []);
            keys.iter().filter_map(|(k, c)| matches!(k, LookKey::All | LookKey::Unasked).then_some(c.at_once)).min()
        };
        assert_eq!(places(Lane::CheckNow), Some(Some(64)));
        for lane in [Lane::Single, Lane::Routine, Lane::Bulk] {
            assert_eq!(places(lane), Some(Some(48)), "{lane}");
        }
        assert_eq!(most_of(Cap::new(1, 1)).at_once, Some(1), "one place is for everybody");
    }
}
