//! Watching: what somebody should know of is raised once and ends by itself, each time with the event that tells of it.
//!
//! A pass looks at rows alone, so that it is right whatever any job did or did not do, and may run in any process at any time:
//! an alert's unique row decides who raises it, and its event is written in the same transaction.

mod lasting;
mod loops;
mod names;
mod platform;
mod risks;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::{App, AppError};
use crate::model::alert::threshold::Thresholds;
use crate::model::moment::Moment;
use crate::model::outcome::NewEvent;
use crate::store::{expiry, issuer_health, issuers};

/// Rows that one transaction writes.
const PAGE: i64 = 200;
/// Failures in a row from which on an issuer is unwell.
const UNWELL: i64 = 5;

/// What the operator decided.
#[derive(Clone, Debug)]
pub struct AlertSettings {
    /// With which shares of its lifetime left a certificate is told of.
    pub thresholds: Thresholds,
    /// After which silence the workers count as stopped.
    pub workers_silent: Duration,
    /// Whether this process has seen to it that every name is looked at by these thresholds.
    thought: Arc<AtomicBool>,
    /// Since when this process watches.
    since: Arc<OnceLock<Moment>>,
}

impl AlertSettings {
    /// As decided.
    pub fn new(thresholds: Thresholds, workers_silent: Duration) -> Self {
        AlertSettings { thresholds, workers_silent, thought: Arc::default(), since: Arc::default() }
    }

    fn watching_since(&self, now: Moment) -> Moment {
        *self.since.get_or_init(|| now)
    }

    /// With other thresholds than before every name is looked at once.
    async fn rethink(&self, app: &App) -> Result<(), AppError> {
        if self.thought.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut tx = app.store.begin().await?;
        expiry::rethink(&mut tx, &format!("{:?}", self.thresholds.all())).await?;
        tx.commit().await?;
        self.thought.store(true, Ordering::Relaxed);
        Ok(())
    }
}

impl Default for AlertSettings {
    fn default() -> Self {
        AlertSettings::new(Thresholds::default(), Duration::from_secs(600))
    }
}

/// What one pass did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Alerts raised.
    pub raised: usize,
    /// Alerts that ended.
    pub resolved: usize,
}

/// Looks at everything once.
pub async fn pass(app: &App, settings: &AlertSettings) -> Result<Passed, AppError> {
    settings.watching_since(app.env.now());
    let unwell = unwell_issuers(app).await?;
    let mut passed = names::look(app, settings, &unwell).await?;
    let (raised, resolved) = platform::look(app, settings, &unwell).await?;
    passed.raised += raised;
    passed.resolved += resolved;
    if passed != Passed::default() {
        // The stream has something new.
        app.bells.relay.notify_one();
    }
    Ok(passed)
}

fn news(kind: &'static str, cause: String, detail: serde_json::Value) -> NewEvent {
    NewEvent { kind, actor: "nameplate".to_owned(), cause, detail }
}

/// Issuers that answer to nobody now, or whose account cannot be used: name, and what was said last.
type Unwell = [(String, String)];

async fn unwell_issuers(app: &App) -> Result<Vec<(String, String)>, AppError> {
    let health = issuer_health::all(&app.store).await?;
    let mut unwell = Vec::new();
    for issuer in issuers::list(&app.store).await?.into_iter().filter(issuers::IssuerRow::is_in_use) {
        let Some(health) = health.get(&issuer.id) else { continue };
        if health.halted.is_some() || health.failures >= UNWELL {
            let said = health.halted.clone().or_else(|| health.said.clone()).unwrap_or_default();
            unwell.push((issuer.name, said));
        }
    }
    Ok(unwell)
}
