//! Judging staged rows, batch by batch, behind the request that brought them.

use std::time::Duration;

use super::{judge, plan, receive};
use crate::app::{App, AppError};
use crate::model::id::ImportId;
use crate::model::moment::Moment;
use crate::store::bulk;
use crate::store::bulk_rows::{self, ToJudge};
use crate::telemetry::Chain;

/// Rows judged in one transaction: on SQLite nobody else writes meanwhile.
const BATCH: i64 = 100;
/// Imports that one round gives a batch each.
const IMPORTS: i64 = 16;
/// Others keep their hands off an import for so long after its last batch. The row's lock is what decides.
const LEASE: Duration = Duration::from_secs(15);
/// Rows of broken imports thrown away in one statement.
const THROWN_AWAY: i64 = 2_000;
/// How long imports that are over, and their verdicts, are kept.
const KEPT: Duration = Duration::from_secs(90 * 24 * 3600);

/// A batch of every import that has rows to judge, and some housekeeping; when to come again, if there is more.
pub async fn round(app: &App) -> Result<Option<Moment>, AppError> {
    let now = app.env.now();
    bulk::give_up_stale(&app.store, now - receive::STALE).await?;
    bulk::forget(&app.store, now - KEPT).await?;
    let clean = bulk::throw_away(&app.store, THROWN_AWAY).await?;
    let mut more = !clean;
    for id in bulk::workable(&app.store, &app.worker, now, IMPORTS).await? {
        more |= step(app, &id).await?;
    }
    Ok(more.then(|| app.env.now()))
}

/// One batch of one import; whether there may be more.
async fn step(app: &App, id: &ImportId) -> Result<bool, AppError> {
    let failed = match batch(app, id, BATCH).await {
        Ok(more) => return Ok(more),
        Err(e) => e,
    };
    if passes_by_itself(&failed) {
        return Err(failed);
    }
    tracing::warn!(error = %Chain(&failed), import.id = %id, "a batch of rows failed; its rows are tried one by one");
    for _ in 0..BATCH {
        match batch(app, id, 1).await {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(e) if passes_by_itself(&e) => return Err(e),
            Err(e) => {
                tracing::error!(error = %Chain(&e), import.id = %id, "a row failed; it is refused and the others go on");
                skip(app, id).await?;
            }
        }
    }
    Ok(true)
}

/// Whether another try can be expected to do better, which is no row's fault.
fn passes_by_itself(e: &AppError) -> bool {
    matches!(e, AppError::Store(e) if e.passes_by_itself())
}

async fn batch(app: &App, id: &ImportId, size: i64) -> Result<bool, AppError> {
    let mut tx = app.store.begin().await?;
    let now = app.env.now();
    let Some(import) = bulk::take(&mut tx, id, &app.worker, now, now + LEASE).await? else { return Ok(false) };
    let rows = bulk_rows::next(&mut tx, id, import.cursor, size).await?;
    let Some(last) = rows.last().map(|r| r.row.n) else {
        tx.commit().await?;
        return finish(app, id).await;
    };
    let counts = judge::judge(app, &mut tx, &import, &rows).await?;
    bulk::advance(&mut tx, id, last, &counts).await?;
    app.boundary.cross("before a batch of rows is judged").await;
    tx.commit().await?;
    app.boundary.cross("a batch of rows judged").await;
    Ok(true)
}

async fn skip(app: &App, id: &ImportId) -> Result<(), AppError> {
    let mut tx = app.store.begin().await?;
    let now = app.env.now();
    let Some(import) = bulk::take(&mut tx, id, &app.worker, now, now + LEASE).await? else { return Ok(()) };
    let rows = bulk_rows::next(&mut tx, id, import.cursor, 1).await?;
    let Some(ToJudge { row, .. }) = rows.first() else { return Ok(()) };
    let counts = judge::refuse_for_us(&mut tx, &import, row).await?;
    bulk::advance(&mut tx, id, row.n, &counts).await?;
    Ok(tx.commit().await?)
}

/// Every row has its verdict: what the limits make of it is worked out and kept.
async fn finish(app: &App, id: &ImportId) -> Result<bool, AppError> {
    let plan = plan::of(app, id).await?;
    app.boundary.cross("before an import is done").await;
    if bulk::finish(&app.store, id, plan.as_ref(), app.env.now()).await? {
        tracing::info!(import.id = %id, "every row of an import has its verdict");
    }
    Ok(false)
}
