//! DNS hosts: recognised by a zone's name servers, and what their panels want to have entered.
//!
//! A pure table ([`table`]), the words made from it ([`words`]), and the fields of a panel's form ([`entry()`]). What always holds: a zone is some provider's only when all
//! of its name servers are; where they differ, or where nobody here knows them, nothing is said and the neutral advice stands.
//! Panels change: the table keeps to what decides whether a record ends up right (names relative to the zone, the word for the
//! zone itself, a final dot), and calls a field by its label only to help the eye. What is not known of a panel is not guessed:
//! a wrong dot or label costs a customer more than a neutral word. How to get it wrong: match a suffix inside a label
//! (`notgandi.net` is not Gandi), or take the name server's own zone for the customer's.

mod entry;
mod table;
mod words;

pub use entry::{Entry, Named, entry};
pub use table::{Apex, PROVIDERS, Provider, Target, ZoneItself};
pub use words::describe;

use crate::model::look::name;

/// Whose name servers these are; none where they are nobody's we know, or not all the same provider's.
pub fn recognise(name_servers: &[String]) -> Option<&'static Provider> {
    let mut all = name_servers.iter().map(|host| of_host(host));
    let first = all.next()??;
    all.all(|p| p.is_some_and(|p| p.name == first.name)).then_some(first)
}

/// The provider of this name, as [`DnsHost`](crate::model::evidence::DnsHost) keeps it.
pub fn by_name(name: &str) -> Option<&'static Provider> {
    PROVIDERS.iter().find(|p| p.name == name)
}

fn of_host(host: &str) -> Option<&'static Provider> {
    let host = name::canonical(host);
    PROVIDERS.iter().find(|p| p.name_servers.iter().any(|pattern| matches(&host, pattern)))
}

/// Whether a host lies at or beneath a pattern: labels from the right; `*` at a label's end stands for any rest of it.
fn matches(host: &str, pattern: &str) -> bool {
    let mut labels = host.rsplit('.');
    pattern.rsplit('.').all(|wanted| {
        labels.next().is_some_and(|label| match wanted.strip_suffix('*') {
            Some(start) => label.starts_with(start),
            None => label == wanted,
        })
    })
}

#[cfg(test)]
mod tests;
