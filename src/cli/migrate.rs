//! `nameplate migrate`

use std::path::Path;

use super::{Out, Surroundings, load};
use crate::roles::open_store;

pub(super) async fn run(surroundings: &Surroundings, file: Option<&Path>, out: &mut Out<'_>) -> anyhow::Result<()> {
    let store = open_store(&load(surroundings, file)?).await?;
    store.close().await;
    if out.json {
        out.document(&serde_json::json!({ "schema": "current" }))?;
    } else {
        out.line("The database has this version's schema.")?;
    }
    Ok(())
}
