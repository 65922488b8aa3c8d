//! Whose renewal is at risk, by what the zones say, held against what was told of it.

use std::collections::HashMap;

use super::expected::A_LOOK;
use super::names::{Name, Trouble};
use super::receiver::Told;
use crate::model::moment::Moment;

/// What was told of risks and is not told as over: the cause, by name and alert.
#[derive(Default)]
pub(super) struct Risks(HashMap<String, HashMap<String, String>>);

/// What a message was.
pub(super) enum Heard {
    Fine,
    Twice(String),
    Untrue(String),
}

/// Whether a renewal would be refused for it, and nothing else tells of it.
fn is_risk(trouble: Trouble, name: &Name) -> bool {
    match trouble {
        Trouble::CaaHostile | Trouble::AaaaElsewhere | Trouble::Bogus => true,
        // Elsewhere the way is a part of the tie, which tells of it.
        Trouble::WayGone => name.host.is_apex(),
        // Nothing ties the top of a zone without its record: it is told of as that, and not renewed.
        Trouble::RecordGone | Trouble::BothGone | Trouble::Silent => false,
    }
}

impl Risks {
    fn is_open(&self, host: &str) -> bool {
        self.0.get(host).is_some_and(|open| !open.is_empty())
    }

    /// What should have been told by now, if it has been as it is since then.
    pub(super) fn lacking(&self, name: &Name, since: Moment) -> Option<String> {
        name.wanted()?;
        let open = self.is_open(name.host.as_str());
        match name.trouble {
            None if name.well_since == Some(since) && open => {
                Some(format!("that the renewal of {} is not at risk any more", name.host))
            }
            Some((trouble, at)) if at == since && is_risk(trouble, name) && !open => {
                Some(format!("that the renewal of {} is at risk ({trouble:?})", name.host))
            }
            _ => None,
        }
    }

    /// Something was told of a name.
    pub(super) fn told(&mut self, told: &Told, name: Option<&Name>, host: &str) -> Heard {
        let detail = &told.data["detail"];
        let (alert, cause) = (text(detail, "alert"), text(detail, "cause"));
        let open = self.0.entry(host.to_owned()).or_default();
        if told.kind == "renewal_safe" {
            return match open.remove(&alert) {
                Some(_) => Heard::Fine,
                None => Heard::Untrue(format!("the end of a risk for the renewal of {host} that was not told")),
            };
        }
        if open.insert(alert, cause.clone()).is_some_and(|before| before == cause) {
            return Heard::Twice(format!("a risk for the renewal of {host} ({cause})"));
        }
        // What is over is noticed with the next look.
        let lately = |name: &Name| match (name.trouble, name.well_since) {
            (Some((trouble, _)), _) => is_risk(trouble, name),
            (None, Some(well)) => told.at.since(well) <= A_LOOK,
            (None, None) => true,
        };
        if name.is_some_and(lately) {
            Heard::Fine
        } else {
            Heard::Untrue(format!("a risk for the renewal of {host} ({cause})"))
        }
    }
}

fn text(detail: &serde_json::Value, field: &str) -> String {
    detail[field].as_str().unwrap_or_default().to_owned()
}
