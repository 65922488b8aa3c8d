//! When a hostname has neither alias nor address: what stands in the way, or where the record went.

use crate::model::look::{Kind, name};
use crate::model::reason::Reason;

use super::hints;
use super::reader::Reader;
use super::routing::Route;

/// The reason for the absence, with the name that explains it.
pub fn missing(reader: &Reader<'_>, route: &Route<'_>, apex: bool) -> Option<(Reason, String)> {
    let hostname = route.hostname;
    let doubled = format!("{hostname}.{}", reader.ask.registered_domain);
    // All at once: none depends on another.
    let beside = name::parent(&doubled).map(|parent| hints::wildcard_alias_beneath(reader, parent));
    let (moved, mail, text, wildcard) = (
        reader.any(&doubled, Kind::Cname),
        reader.any(hostname, Kind::Mx),
        reader.any(hostname, Kind::Txt),
        hints::wildcard_above(reader, hostname),
    );
    // A wildcard answers for the doubled name as well; only a record of its own is a misplaced one.
    let moved = moved?.aliases(&doubled).first().cloned();
    if moved.is_some() && moved != beside.unwrap_or(Some(None))? {
        return Some((Reason::CnameZoneAppended, doubled));
    }
    let has_mail = mail?.at(hostname, Kind::Mx).next().is_some();
    let has_text = text?.at(hostname, Kind::Txt).next().is_some();
    if !apex && (has_mail || has_text) {
        let kinds: Vec<&str> =
            [(has_mail, "MX"), (has_text, "TXT")].iter().filter(|(there, _)| *there).map(|(_, k)| *k).collect();
        return Some((Reason::WrongRecordType, kinds.join(" and ")));
    }
    if let Some((owner, _)) = wildcard?.filter(|(owner, _)| !apex && name::within(hostname, &owner[2..])) {
        return Some((Reason::WildcardShadowed, owner));
    }
    let reason = match (route.ask.was_live, apex) {
        // The top of a zone is still there without an address.
        (_, true) => Reason::AddressMissing,
        (true, false) => Reason::LiveHostnameGone,
        (false, false) => Reason::CnameMissing,
    };
    Some((reason, hostname.to_owned()))
}
