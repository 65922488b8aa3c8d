//! Names at rest: looked at until they lead elsewhere, and then free. Whoever left one behind is told once a week which record is
//! to be deleted, as long as it leads here; so are the operators.

use std::time::Duration;

use futures::stream::{self, StreamExt as _};
use serde_json::json;

use super::offboard::{self, Way};
use super::{App, AppError};
use crate::mint;
use crate::model::alert::kinds::{NAME_DANGLES, NAME_LET_GO};
use crate::model::id::EventId;
use crate::model::letting_go::{Step, records};
use crate::model::moment::Moment;
use crate::model::outcome::NewEvent;
use crate::store::resting::{self, RestingRow};
use crate::store::{Tx, claims, situation};
use crate::telemetry::Chain;

/// Names looked at in one round.
const BATCH: i64 = 64;
/// Looks under way at once.
const AT_ONCE: usize = 16;
/// A name whose look could not be recorded is not tried over and over.
const PAUSE: Duration = Duration::from_secs(60);

/// What a round did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Names looked at.
    pub looked: usize,
    /// Reminders written.
    pub reminded: usize,
    /// Names that are free now.
    pub freed: usize,
    /// When to come again, if more are due.
    pub next: Option<Moment>,
}

/// Looks at the names at rest that are due.
pub async fn round(app: &App) -> Result<Round, AppError> {
    let due = resting::due(&app.store, app.env.now(), BATCH).await?;
    let full = i64::try_from(due.len()).is_ok_and(|n| n == BATCH);
    let seen: Vec<_> = stream::iter(due).map(|row| look(app, row)).buffered(AT_ONCE).collect().await;
    let mut round = Round { looked: seen.len(), next: full.then(|| app.env.now()), ..Round::default() };
    for (row, way) in seen {
        match concluded(app, &row, &way).await {
            Ok(Some(Step::Free)) => round.freed += 1,
            Ok(Some(Step::Remind)) => round.reminded += 1,
            Ok(_) => {}
            // One name's row must not keep the others from their look.
            Err(e) => {
                tracing::warn!(hostname.name = %row.former.hostname, error = %Chain(&e), "a look at a name at rest was not recorded");
                round.next = Some(app.env.now() + PAUSE);
            }
        }
    }
    Ok(round)
}

async fn look(app: &App, row: RestingRow) -> (RestingRow, Way) {
    let way = offboard::look(app, &row.former).await;
    (row, way)
}

/// Records what a look came to, with the event that tells of it; nothing when the name rests no longer.
async fn concluded(app: &App, row: &RestingRow, way: &Way) -> Result<Option<Step>, AppError> {
    let now = app.env.now();
    let (after, step, next) = row.resting.seen(way.leads, now);
    let mut tx = app.store.begin().await?;
    // Claims first and the holding after them, as every step does.
    let told = match step {
        Step::Remind => Some(dangles(row, way)),
        Step::LetUsGo { told: true } => Some(let_us_go(row)),
        Step::Rest | Step::LetUsGo { told: false } | Step::Free => None,
    };
    if let Some(event) = &told {
        tell(app, &mut tx, row, event, now).await?;
    }
    let changed = if step == Step::Free {
        let [others, free] = resting::free(row, now);
        tx.execute(others).await?;
        tx.execute(free).await?
    } else {
        tx.execute(resting::looked(row, &after, next)).await?
    };
    if changed != 1 {
        return Ok(None);
    }
    app.boundary.cross("a name at rest concluded").await;
    tx.commit().await?;
    if told.is_some() {
        app.bells.relay.notify_one();
    }
    Ok(Some(step))
}

/// Into the history of the claim that was: a step of it in flight is fenced off, so that the numbers have no gap.
async fn tell(app: &App, tx: &mut Tx, row: &RestingRow, event: &NewEvent, now: Moment) -> Result<(), AppError> {
    let domain = situation::fence(tx, &row.former.id).await?;
    claims::tell(tx, &domain, event, &mint!(app.env, EventId), now).await?;
    Ok(())
}

fn dangles(row: &RestingRow, way: &Way) -> NewEvent {
    let (name, target) = (&row.former.hostname, &row.former.target);
    NewEvent {
        kind: NAME_DANGLES,
        actor: "nameplate".to_owned(),
        cause: format!(
            "{name} was let go of on {} and its DNS still leads here: delete {}, or point it to where the name is used now",
            row.resting.since.in_words(),
            records::in_words(name.as_str(), &way.records, target)
        ),
        detail: json!({
            "hostname": name, "domain": row.former.id, "target": target, "observed": way.observed,
            "records": way.records.iter().map(|r| format!("{} {}", r.kind, r.value)).collect::<Vec<_>>(), "let_go_at": row.resting.since.rfc3339(),
        }),
    }
}

fn let_us_go(row: &RestingRow) -> NewEvent {
    let name = &row.former.hostname;
    NewEvent {
        kind: NAME_LET_GO,
        actor: "nameplate".to_owned(),
        cause: format!("the DNS of {name} does not lead here any more; nothing is left to be deleted"),
        detail: json!({ "hostname": name, "domain": row.former.id }),
    }
}
