//! What a look is to find out about a domain.

use std::time::Duration;

use super::App;
use crate::model::claim::Claim;
use crate::model::domain::{Domain, RoutingMode, Situation};
use crate::model::hostname::Hostname;
use crate::model::look::{Ask, CaaAsk, Depth, OwnershipAsk, RoutingAsk, Turn};
use crate::model::moment::Moment;
pub(super) use crate::model::records::{OWNERSHIP_LABEL as TXT_LABEL, OWNERSHIP_PREFIX as TXT_PREFIX};

/// How long an attempt may take.
pub(super) const ATTEMPT_LIFE: Duration = Duration::from_secs(30 * 24 * 3600);
/// An observation older than this is no ground for an order (the CA repeats its own after 7 hours).
const CAA_MAX_AGE: Duration = Duration::from_secs(7 * 3600);
/// How many aliases may lie between a hostname and its target.
const MAX_CHAIN: usize = 10;

/// The look for all checks of a domain. `superseded`: values of its earlier attempts.
pub(super) fn everything(app: &App, s: &Situation, superseded: Vec<String>, now: Moment) -> Ask {
    let d = &s.domain;
    let settings = &app.settings;
    let mut ask = Ask::new(d.hostname.clone(), settings.platform.clone());
    ask.turn = Turn::of(&d.tenant_id, s.look_lane());
    ask.ownership = Some(OwnershipAsk {
        name: format!("{TXT_LABEL}.{}", d.hostname),
        value: s.attempt.value.clone(),
        prefix: TXT_PREFIX.to_owned(),
        superseded,
        age: s.attempt.proven_at.is_none().then(|| now.since(s.attempt.opened_at)),
        max_age: ATTEMPT_LIFE,
        other_servers: Vec::new(),
    });
    ask.routing = Some(routing(app, d));
    ask.caa = Some(CaaAsk {
        issuers: s.issuer.caa_identities.clone(),
        account_uri: s.issuer.account_url.clone(),
        method: "http-01".to_owned(),
        wildcard: false,
        extra_names: Vec::new(),
        age: Duration::ZERO,
        max_age: CAA_MAX_AGE,
    });
    ask
}

/// The question whether a name leads to what its tenant was told.
pub(super) fn routing(app: &App, d: &Domain) -> RoutingAsk {
    RoutingAsk {
        accepted_targets: vec![d.target.clone()],
        target_for_record: d.target.clone(),
        foreign_targets: Vec::new(),
        tenant_zone: (d.routing_mode == RoutingMode::PerTenant).then(|| app.settings.canonical_suffix.clone()),
        was_live: d.claim == Claim::Live,
        max_chain: MAX_CHAIN,
    }
}

/// The look for nothing but the addresses of a name.
pub(super) fn addresses(app: &App, name: &Hostname) -> Ask {
    let mut ask = Ask::new(name.clone(), app.settings.platform.clone());
    ask.depth = Depth::Routine;
    ask.routing = Some(RoutingAsk {
        accepted_targets: vec![name.to_string()],
        target_for_record: name.to_string(),
        max_chain: MAX_CHAIN,
        ..RoutingAsk::default()
    });
    ask
}
