//! `nameplate edge list|drain|undrain|revoke`: on the store, no server needed.

use std::path::Path;

use anyhow::bail;

use super::args::EdgeCommand;
use super::{Out, Surroundings, load};
use crate::app::show::EdgeView;
use crate::env::Env;
use crate::model::id::EdgeId;
use crate::roles::{open_current, open_feed};
use crate::store::Store;
use crate::store::edges::{self, EdgeRow, EdgeStatus};

pub(super) async fn run(
    surroundings: &Surroundings,
    file: Option<&Path>,
    env: &Env,
    command: EdgeCommand,
    out: &mut Out<'_>,
) -> anyhow::Result<()> {
    let config = load(surroundings, file)?;
    match command {
        EdgeCommand::List => {
            let store = open_current(&config).await?;
            let head = edges::head(&store).await?;
            let views = edges::list(&store).await?.into_iter().map(|row| EdgeView::new(row, head, env.now()));
            list(&views.collect::<Vec<_>>(), out)?;
            store.close().await;
        }
        EdgeCommand::Drain { edge } => {
            let store = open_current(&config).await?;
            let row = set(&store, &edge, EdgeStatus::Drained).await?;
            told(&store, env, &row.id, &format!("{} counts no more and can be taken down.", row.name), out).await?;
            store.close().await;
        }
        EdgeCommand::Undrain { edge } => {
            let store = open_current(&config).await?;
            let row = set(&store, &edge, EdgeStatus::Active).await?;
            told(&store, env, &row.id, &format!("{} counts again once it is heard of.", row.name), out).await?;
            store.close().await;
        }
        EdgeCommand::Revoke { edge } => {
            let (store, feed) = open_feed(&config, env).await?;
            let row = find(&store, &edge).await?;
            if !feed.revoke(&row.id).await? {
                bail!(
                    "the edge {} is revoked already, and stays so; a new one joins with: nameplate token create --edge",
                    row.name
                );
            }
            let what = "is shut out for ever, and nothing sealed from now on opens for it.";
            told(&store, env, &row.id, &format!("{} {what}", row.name), out).await?;
            store.close().await;
        }
    }
    Ok(())
}

async fn set(store: &Store, named: &str, status: EdgeStatus) -> anyhow::Result<EdgeRow> {
    let row = find(store, named).await?;
    if store.execute(edges::set_status(&row.id, status)).await? == 0 {
        bail!("the edge {} is revoked and stays so; a new one joins with: nameplate token create --edge", row.name);
    }
    Ok(row)
}

async fn find(store: &Store, named: &str) -> anyhow::Result<EdgeRow> {
    let mut tx = store.read().await?;
    if let Some(row) = edges::find(&mut tx, named).await? {
        return Ok(row);
    }
    match edges::revoked_as(&mut tx, named).await? {
        Some(row) => bail!("the edge {named} is revoked already, and its name is free again; it was {}", row.id),
        None => bail!("there is no edge {named:?}; see: nameplate edge list"),
    }
}

async fn told(store: &Store, env: &Env, id: &EdgeId, line: &str, out: &mut Out<'_>) -> anyhow::Result<()> {
    if !out.json {
        return Ok(out.line(line)?);
    }
    let row = find(store, id.as_str()).await?;
    out.document(&EdgeView::new(row, edges::head(store).await?, env.now()))?;
    Ok(())
}

fn list(rows: &[EdgeView], out: &mut Out<'_>) -> anyhow::Result<()> {
    if out.json {
        out.document(&rows)?;
        return Ok(());
    }
    let line = |row: &EdgeView| {
        let lost = row.lost_at.map_or("", |_| ", left behind");
        vec![
            row.name.clone(),
            format!("{}{lost}", row.status),
            row.cursor.seq.to_string(),
            row.lag.map_or_else(|| "-".to_owned(), |lag| lag.to_string()),
            row.heartbeat_at.rfc3339(),
            row.id.to_string(),
        ]
    };
    out.table(&["NAME", "STATUS", "HAS", "LACKS", "HEARD OF", "ID"], &rows.iter().map(line).collect::<Vec<_>>())?;
    Ok(())
}
