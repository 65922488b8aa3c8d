//! `names`: which hostnames may be claimed.

use super::reader::Reader;
use super::setting::DnsName;

/// The section.
#[derive(Clone, Debug)]
pub struct NamesConfig {
    /// Own zones: nobody claims a name in them.
    pub reserved_zones: Vec<DnsName>,
    /// Suffixes accepted although the public suffix list does not know them.
    pub extra_suffixes: Vec<DnsName>,
}

impl NamesConfig {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        NamesConfig {
            reserved_zones: r.value(
                "names.reserved_zones",
                vec![],
                "Zones of the platform in which no tenant may claim a name; those of `routing` are reserved anyway.",
            ),
            extra_suffixes: r.value(
                "names.extra_suffixes",
                vec![],
                "Suffixes accepted although they are not on the public suffix list, for private CAs and trials.",
            ),
        }
    }
}
