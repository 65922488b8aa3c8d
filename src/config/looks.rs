//! `looks`: how fast DNS is looked at, and how much any zone, name server or tenant may have of it.

use super::reader::Reader;
use super::setting::Setting;

/// The section. All numbers are for one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LooksConfig {
    /// Looks that begin in any second.
    pub per_second: u32,
    /// Looks under way.
    pub at_once: u32,
    /// Looks at names of one registered domain that begin in any second.
    pub zone_per_second: u32,
    /// Those under way.
    pub zone_at_once: u32,
    /// Looks for one tenant that begin in any second.
    pub tenant_per_second: u32,
    /// Those under way.
    pub tenant_at_once: u32,
    /// Packets sent in any second.
    pub packets_per_second: u32,
    /// Packets sent to one name server in any second.
    pub server_per_second: u32,
    /// Questions to one name server that are not answered yet.
    pub server_at_once: u32,
    /// Looks at imported names in any second.
    pub imports_per_second: u32,
    /// Looks a second in the lap of imported names that wait.
    pub lap_per_second: u32,
}

struct AtLeastOne(u32);

impl Setting for AtLeastOne {
    const EXPECTED: &'static str = "a whole number from 1 to 1000000";
    fn read(text: &str) -> Option<Self> {
        text.parse().ok().filter(|n| (1..=1_000_000).contains(n)).map(AtLeastOne)
    }
    fn show(&self) -> String {
        self.0.to_string()
    }
}

impl LooksConfig {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        let mut number = |key: &str, default: u32, doc: &'static str| r.value(key, AtLeastOne(default), doc).0;
        LooksConfig {
            per_second: number(
                "looks.per_second",
                200,
                "Looks at DNS that begin in any second. These keys hold for each process.",
            ),
            at_once: number(
                "looks.at_once",
                64,
                "Looks under way at the same time; a quarter of the places is kept for \"check now\".",
            ),
            zone_per_second: number(
                "looks.zone_per_second",
                20,
                "Looks at names of one registered domain that begin in any second.",
            ),
            zone_at_once: number(
                "looks.zone_at_once",
                8,
                "Looks at names of one registered domain under way at the same time.",
            ),
            tenant_per_second: number(
                "looks.tenant_per_second",
                50,
                "Looks for one tenant that begin in any second; as many again that somebody asked for.",
            ),
            tenant_at_once: number(
                "looks.tenant_at_once",
                16,
                "Looks for one tenant under way; as many again that somebody asked for.",
            ),
            packets_per_second: number(
                "looks.packets_per_second",
                5000,
                "Questions sent in any second, those to `dns.resolvers` included.",
            ),
            server_per_second: number(
                "looks.server_per_second",
                100,
                "Questions sent to one zone's name server in any second. A fifth as many looks begin at zones that it is known to serve.",
            ),
            server_at_once: number(
                "looks.server_at_once",
                32,
                "Questions to one zone's name server that wait for their answer.",
            ),
            imports_per_second: number(
                "looks.imports_per_second",
                10,
                "Looks at imported names in any second; one import's first looks come at this pace.",
            ),
            lap_per_second: number(
                "looks.lap_per_second",
                1,
                "Looks a second at imported names that wait for their records; a lap takes from one hour to one day.",
            ),
        }
    }
}
