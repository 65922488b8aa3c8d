//! `nameplate doctor`: looks at a real installation from where it is run, and says what is wrong and what to do.
//!
//! Each file examines one part and adds lines to a [`Report`]: what was looked at, what was seen, whether that will do, what
//! to do where it will not. Nothing is changed: no schema, no canary, no row. **Always holds**: a part that cannot be looked
//! at because another is broken is not called broken too, it is left out with the reason. **To fake it**: give a
//! configuration whose parts lie on loopback, and break one. **To get it wrong**: report a guess as a fact, or stop at the
//! first thing that is wrong.

mod database;
mod edges;
mod issuers;
mod names;
mod ports;
mod report;
mod settings;

pub use report::{Finding, Report, Verdict};

use crate::config::{Config, Role};
use crate::env::Env;

/// Examines what a configuration describes, for the roles that run with it on this machine.
pub async fn examine(config: &Config, roles: &[Role], env: &Env) -> Report {
    let mut report = Report::default();
    settings::examine(config, roles, &mut report);
    let control = roles.iter().any(|role| matches!(role, Role::Serve | Role::Work));
    if control {
        names::examine(config, env, &mut report).await;
    }
    ports::examine(config, roles, &mut report).await;
    if !control {
        return report;
    }
    issuers::examine_directories(config, env, &mut report).await;
    let store = database::examine(config, env, &mut report).await;
    let Some(store) = store else {
        report.skipped("issuers", "accounts", "the database cannot be asked");
        report.skipped("edges", "edges and certificates", "the database cannot be asked");
        return report;
    };
    issuers::examine_accounts(config, &store, env, &mut report).await;
    edges::examine(config, &store, env, &mut report).await;
    store.close().await;
    report
}

/// The roles that a configuration is made for: what it names decides.
pub fn roles_of(config: &Config) -> Vec<Role> {
    let mut roles = Vec::new();
    if config.vault.master_key.is_some() || config.server.public_url.is_some() || config.edge.name.is_none() {
        roles.push(Role::Serve);
    }
    if config.edge.name.is_some() {
        roles.push(Role::Edge);
    }
    roles
}
