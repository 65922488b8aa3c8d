//! Answers that nobody judges: which zone a name lies in, and what a name's TXT records say. By the word of our resolvers.

use crate::model::look::{Ask, Data, Kind, Seen, name};

use super::reader::Reader;
use super::txt_value::joined;

/// Notes what has to be asked.
pub(super) fn want(reader: &Reader<'_>) {
    if let Some(name) = &reader.ask.text {
        let _ = reader.any(name, Kind::Txt);
    }
    if let Some(of) = &reader.ask.zone_of {
        let top = reader.registered_domain(of);
        for level in name::climb(of).take_while(|level| name::within(level, &top)) {
            let _ = reader.any(level, Kind::Ns);
        }
    }
}

/// The zone that `of` lies in, as far as this look saw.
pub fn zone_of(ask: &Ask, seen: &Seen, of: &str) -> Option<String> {
    Reader::new(ask, seen).known_servers(of).map(|(zone, _)| zone)
}

/// The texts of a name's TXT records, strings of one record joined, wherever its aliases lead; what is no UTF-8 is left out.
pub fn texts(ask: &Ask, seen: &Seen, of: &str) -> Vec<String> {
    let reader = Reader::new(ask, seen);
    let Some(answer) = reader.any(of, Kind::Txt).filter(|answer| answer.definite()) else { return Vec::new() };
    let owner = answer.aliases(of).last().cloned().unwrap_or_else(|| of.to_owned());
    let texts = answer.records.iter().filter(|rr| rr.name == owner).filter_map(|rr| match &rr.data {
        Data::Txt(strings) => Some(joined(strings)),
        _ => None,
    });
    texts.collect()
}
