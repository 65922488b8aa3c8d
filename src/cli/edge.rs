//! `nameplate edge list|drain|revoke`: on the store, no server needed.

use std::path::Path;

use anyhow::bail;
use serde_json::json;

use super::args::EdgeCommand;
use super::{Out, Surroundings, load, open_store};
use crate::env::Env;
use crate::roles::open_feed;
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
            let store = open_store(&config).await?;
            list(&edges::list(&store).await?, out)?;
            store.close().await;
        }
        EdgeCommand::Drain { edge } => {
            let store = open_store(&config).await?;
            let row = find(&store, &edge).await?;
            if store.execute(edges::set_status(&row.id, EdgeStatus::Drained)).await? == 0 {
                bail!("the edge {} is revoked and stays so", row.name);
            }
            store.close().await;
            told(&row, "drained", "counts no more and can be taken down", out)?;
        }
        EdgeCommand::Revoke { edge } => {
            let (store, feed) = open_feed(&config, env).await?;
            let row = find(&store, &edge).await?;
            if !feed.revoke(&row.id).await? {
                bail!("the edge {} is revoked already", row.name);
            }
            store.close().await;
            told(&row, "revoked", "is shut out for ever, and nothing sealed from now on opens for it", out)?;
        }
    }
    Ok(())
}

async fn find(store: &Store, named: &str) -> anyhow::Result<EdgeRow> {
    match edges::find(&mut store.read().await?, named).await? {
        Some(row) => Ok(row),
        None => bail!("there is no edge {named:?}; see: nameplate edge list"),
    }
}

fn told(row: &EdgeRow, status: &str, what: &str, out: &mut Out<'_>) -> anyhow::Result<()> {
    if out.json {
        out.document(&json!({ "id": row.id, "name": row.name, "status": status }))?;
    } else {
        out.line(&format!("{} {what}.", row.name))?;
    }
    Ok(())
}

fn list(rows: &[EdgeRow], out: &mut Out<'_>) -> anyhow::Result<()> {
    if out.json {
        let document = |row: &EdgeRow| {
            json!({
                "id": row.id,
                "name": row.name,
                "status": row.status.as_str(),
                "cursor": { "epoch": row.cursor.epoch, "seq": row.cursor.seq },
                "heartbeat_at": row.heartbeat_at.rfc3339(),
                "lost_at": row.lost_at.map(|at| at.rfc3339()),
                "enrolled_at": row.enrolled_at.rfc3339(),
            })
        };
        out.document(&rows.iter().map(document).collect::<Vec<_>>())?;
        return Ok(());
    }
    let line = |row: &EdgeRow| {
        let lost = row.lost_at.map_or("", |_| ", left behind");
        vec![
            row.name.clone(),
            format!("{}{lost}", row.status.as_str()),
            row.cursor.seq.to_string(),
            row.heartbeat_at.rfc3339(),
            row.id.to_string(),
        ]
    };
    out.table(&["NAME", "STATUS", "HAS", "HEARD OF", "ID"], &rows.iter().map(line).collect::<Vec<_>>())?;
    Ok(())
}
