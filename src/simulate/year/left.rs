//! Names that were let go of and still lead to us, by what the zones say, held against what their former tenants were told.

use std::collections::HashMap;
use std::time::Duration;

use super::names::{Name, Names, Trouble};
use super::receiver::Told;
use crate::model::moment::Moment;

const HOUR: Duration = Duration::from_secs(3600);
/// A name is looked at in the batches of the day; a message is made within this.
const SLACK: Duration = Duration::from_secs(6 * 3600);
/// Whoever let go of a name hears of it after a day...
pub(super) const FIRST: Duration = Duration::from_secs(24 * 3600).saturating_add(SLACK);
/// ...and then once a week.
const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);
pub(super) const AGAIN: Duration = WEEK.saturating_add(SLACK);

/// What was told last of each claim: when it was written, by its id.
#[derive(Default)]
pub(super) struct Left(HashMap<String, Moment>);

/// What should have been told.
pub(super) enum Due {
    /// Nothing leads to us any more, or nobody can see whether it does.
    Over,
    /// It was, then.
    Told(Moment),
    Lacking(String),
}

/// What a message was.
pub(super) enum Heard {
    Fine,
    Twice(String),
    Untrue(String),
}

impl Left {
    /// Whether the tenant of that claim was told since then.
    pub(super) fn due(&self, names: &Names, n: usize, claim: usize, since: Moment) -> Due {
        let name = names.at(n);
        let unseen = matches!(name.trouble, Some((Trouble::Bogus | Trouble::Silent, _)));
        let Some(of) = name.claims.get(claim).filter(|_| name.wanted.is_none() && !unseen) else { return Due::Over };
        if !names.leads_to_us(&name.host) {
            return Due::Over;
        }
        match self.0.get(of.id.as_str()).filter(|at| **at >= since) {
            Some(at) => Due::Told(*at),
            None => Due::Lacking(format!("that {} leads here still, to {}, who let go of it", name.host, of.tenant)),
        }
    }

    /// Something was told of a name that was let go of.
    pub(super) fn told(&mut self, told: &Told, name: Option<&Name>, host: &str) -> Heard {
        let id = told.data["domain_id"].as_str().unwrap_or_default();
        let written = told.data["at"].as_str().and_then(Moment::from_rfc3339).unwrap_or_default();
        let Some((name, of)) = name.and_then(|name| Some((name, name.claims.iter().find(|claim| claim.id.as_str() == id)?)))
        else {
            return Heard::Untrue(format!("that {host} dangles, of a claim that nobody made,"));
        };
        if told.path != place_of(of.tenant.as_str()) {
            return Heard::Untrue(format!("that {host} dangles, to another than who let go of it ({}),", told.path));
        }
        if name.down_at.is_some_and(|down| down + HOUR < written) {
            return Heard::Untrue(format!("that {host} dangles, whose records were gone,"));
        }
        match self.0.insert(id.to_owned(), written) {
            Some(before) if written.since(before) + HOUR < WEEK => Heard::Twice(format!("that {host} dangles")),
            _ => Heard::Fine,
        }
    }
}

/// The path of a tenant's own place.
pub(super) fn place_of(tenant: &str) -> String {
    format!("/tenants/{tenant}")
}
