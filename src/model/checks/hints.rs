//! Wildcards: whether one answers for a name, and where it stands.

use crate::model::look::{Kind, name};

use super::reader::Reader;

/// A label nobody publishes. What answers for it is a wildcard.
const NOBODYS_LABEL: &str = "_nameplate-probe";

/// The first alias that a wildcard gives to names beneath `parent` which have no records of their own.
pub fn wildcard_alias_beneath(reader: &Reader<'_>, parent: &str) -> Option<Option<String>> {
    let probe = format!("{NOBODYS_LABEL}.{parent}");
    Some(reader.any(&probe, Kind::Cname)?.aliases(&probe).first().cloned())
}

/// The nearest wildcard above `name` that holds an alias or an address: its owner, and its alias if it is one.
pub fn wildcard_above(reader: &Reader<'_>, name: &str) -> Option<Option<(String, Option<String>)>> {
    let top = reader.registered_domain(name);
    let owners: Vec<String> =
        name::climb(name).skip(1).take_while(|n| name::within(n, &top)).map(|n| format!("*.{n}")).collect();
    let answers: Vec<_> = owners.iter().map(|o| reader.any(o, Kind::A)).collect();
    let mut found: Option<(String, Option<String>)> = None;
    for (owner, answer) in owners.iter().zip(answers) {
        let answer = answer?;
        // The target of a wildcard alias may fail or be missing; the alias itself is what is looked for.
        let answer = if answer.definite() { answer } else { reader.any(owner, Kind::Cname)? };
        let alias = answer.aliases(owner).first().cloned();
        let there = alias.is_some() || answer.at(owner, Kind::A).next().is_some();
        found = match found {
            None if there => Some((owner.clone(), alias)),
            // A higher wildcard answers for the star beneath it as well: the highest that says the same is the real one.
            Some((_, same)) if there && same == alias => Some((owner.clone(), alias)),
            Some(nearest) => return Some(Some(nearest)),
            None => None,
        };
    }
    Some(found)
}
