//! Where a name leads: its addresses as our resolvers see them, for whoever then asks there.

use std::net::IpAddr;

use super::{App, ask};
use crate::model::hostname::Hostname;
use crate::model::look::Kind;

/// The addresses of a name, as our resolvers see them now.
pub(super) async fn addresses_of(app: &App, name: &Hostname) -> Vec<IpAddr> {
    let seen = app.look.look(&ask::addresses(app, name)).await;
    let mut all: Vec<IpAddr> = seen
        .observations
        .iter()
        .filter(|o| o.probe.name == name.as_str() && matches!(o.probe.kind, Kind::A | Kind::Aaaa))
        .flat_map(|o| o.answer.addresses())
        .collect();
    all.sort();
    all.dedup();
    all
}
