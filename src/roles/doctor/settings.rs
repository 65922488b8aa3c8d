//! The configuration itself: what each role needs, and the zone of the canonical hosts.

use super::Report;
use crate::config::{Config, Role};

const PART: &str = "configuration";

pub(super) fn examine(config: &Config, roles: &[Role], report: &mut Report) {
    for role in roles {
        let what = match role {
            Role::Serve => "settings of serve",
            Role::Work => "settings of work",
            Role::Edge => "settings of edge",
        };
        match config.check_for(*role) {
            Ok(()) => report.ok(PART, what, "nothing is missing"),
            Err(e) => {
                for problem in e.0 {
                    let advice = format!("set {}", problem.key);
                    report.broken(PART, what, format!("{} {}", problem.key, problem.message), advice);
                }
            }
        }
    }
    let control = roles.iter().any(|role| *role != Role::Edge);
    if let Some(suffix) = config.routing.canonical_suffix.as_ref().filter(|_| control) {
        zone(config, suffix.as_str(), report);
    }
}

/// Tenants' content lives in this zone. Cookies of the registrable domain reach all of it.
fn zone(config: &Config, suffix: &str, report: &mut Report) {
    let what = format!("public suffix of {suffix}");
    let public = psl::suffix(suffix.as_bytes()).filter(psl::Suffix::is_known);
    let is_public = public.is_some_and(|s| s.as_bytes() == suffix.as_bytes());
    let registrable = psl::domain_str(suffix).unwrap_or(suffix);
    let portal = config.server.public_url.as_ref().map(|url| url.host()).unwrap_or_default();
    let shares = psl::domain_str(portal).is_some_and(|d| d == registrable);
    if !suffix.contains('.') {
        let advice = "use a zone below a name that you own, such as app.example.com";
        report.broken(PART, what, "the zone is a top-level domain", advice);
    } else if is_public {
        report.ok(PART, what, "the zone is on the public suffix list: its hosts share no cookies");
    } else if shares {
        let seen =
            format!("{portal} and the tenants' hosts both lie under {registrable}, so each can set cookies for the other");
        let advice = "serve the portal from another registrable domain, or have the zone added to the public suffix list";
        report.warn(PART, what, seen, advice);
    } else {
        report.ok(PART, what, format!("the registrable domain is {registrable}; the portal is elsewhere"));
    }
}
