//! Which servers zones were last seen to have. For pacing only: no evidence is ever read from here.

use std::collections::{HashMap, VecDeque};

use super::caps::ServerKey;

/// Zones that are remembered; the longest known are forgotten first.
const ZONES: usize = 20_000;
/// Servers of one zone that are remembered: as many as are asked.
const SERVERS: usize = 8;

#[derive(Default)]
pub(super) struct Zones {
    servers: HashMap<String, Vec<ServerKey>>,
    order: VecDeque<String>,
}

impl Zones {
    pub fn servers(&self, zone: &str) -> Vec<ServerKey> {
        self.servers.get(zone).cloned().unwrap_or_default()
    }

    pub fn learn(&mut self, zone: &str, servers: impl Iterator<Item = ServerKey>) {
        let mut all: Vec<ServerKey> = Vec::new();
        for server in servers {
            if all.len() < SERVERS && !all.contains(&server) {
                all.push(server);
            }
        }
        // Nothing was asked of anybody: what was known still stands.
        if all.is_empty() {
            return;
        }
        if let Some(known) = self.servers.get_mut(zone) {
            *known = all;
            return;
        }
        if self.order.len() >= ZONES
            && let Some(oldest) = self.order.pop_front()
        {
            self.servers.remove(&oldest);
        }
        self.order.push_back(zone.to_owned());
        self.servers.insert(zone.to_owned(), all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_is_bounded_and_the_latest_word_counts() {
        let server = |n: u8| ServerKey::of(format!("192.0.2.{n}:53").parse().unwrap());
        let mut zones = Zones::default();
        zones.learn("example.com", (0..200).map(server));
        assert_eq!(zones.servers("example.com").len(), SERVERS);
        zones.learn("example.com", [server(7), server(7)].into_iter());
        zones.learn("example.com", std::iter::empty());
        assert_eq!(zones.servers("example.com"), [server(7)]);
        for n in 0..ZONES {
            zones.learn(&format!("z{n}.example"), std::iter::once(server(1)));
        }
        assert_eq!((zones.servers.len(), zones.order.len()), (ZONES, ZONES));
        assert!(zones.servers("example.com").is_empty());
    }
}
