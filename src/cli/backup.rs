//! `nameplate backup`.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::json;

use super::{Out, Surroundings, load};
use crate::config::Config;
use crate::roles::open_existing;
use crate::store::dump::Programs;
use crate::store::{OpenSettings, Store};

#[derive(Args)]
pub(super) struct BackupArgs {
    /// Where the copy goes; the file must not exist
    pub file: PathBuf,
    /// Where PostgreSQL's pg_dump and pg_restore are, if not where the system finds them
    #[arg(long, value_name = "DIRECTORY")]
    pub programs: Option<PathBuf>,
}

/// Copies the database while it is in use.
pub(super) async fn backup(
    surroundings: &Surroundings,
    config: Option<&Path>,
    args: BackupArgs,
    out: &mut Out<'_>,
) -> anyhow::Result<()> {
    let config = load(surroundings, config)?;
    let (file, store) = (&args.file, open_existing(&config).await?);
    // Made here first, so that nobody else may read what is copied into it.
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    let made = match made {
        Ok(made) => made,
        Err(e) => {
            store.close().await;
            if e.kind() == std::io::ErrorKind::AlreadyExists {
                bail!(
                    "{} is there already, and a copy never overwrites one: give another name, such as one with the date, or move it \
                     away first",
                    file.display()
                );
            }
            return Err(e).with_context(|| format!("{} cannot be made", file.display()));
        }
    };
    let bytes = match store.sqlite_pool().is_some() {
        true => of_sqlite(&store, file).await,
        false => of_postgres(&config, made, &args).await,
    };
    store.close().await;
    let bytes = match bytes {
        Ok(bytes) => bytes,
        Err(e) => {
            // A copy that is not whole must not be taken for one.
            let _ = std::fs::remove_file(file);
            return Err(e.context(format!("{} could not be written", file.display())));
        }
    };
    if out.json {
        out.document(&json!({ "file": file.display().to_string(), "bytes": bytes }))?;
    } else {
        out.line(&format!("Copied the database to {} ({bytes} bytes).", file.display()))?;
        out.line("Its secrets are sealed: without the master key, which is not in it, the copy is of no use.")?;
    }
    Ok(())
}

/// SQLite fills an empty file. The copy is opened as a restore would.
async fn of_sqlite(store: &Store, file: &Path) -> anyhow::Result<u64> {
    store.copy_to(file).await?;
    let written = File::open(file)?;
    written.sync_all()?;
    let url = format!("sqlite:{}", file.display());
    let copy = Store::open(&OpenSettings { url, connections: 1 }).await?;
    let whole = copy.schema().await;
    copy.close().await;
    whole.context("the copy cannot be read")?;
    Ok(written.metadata()?.len())
}

/// PostgreSQL's own program writes the file, and its other one reads it.
async fn of_postgres(config: &Config, made: File, args: &BackupArgs) -> anyhow::Result<u64> {
    let programs = Programs::new(config.database.url.expose_str().unwrap_or_default(), args.programs.clone())?;
    programs.dump(made.try_clone()?).await?;
    made.sync_all()?;
    programs.check(&args.file).await.context("the copy cannot be read")?;
    Ok(made.metadata()?.len())
}
