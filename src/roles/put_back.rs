//! A copy of the database, put back and declared to be one, in one go.
//!
//! It goes only where nothing is. What can be wrong with it (another kind of database, cut off, of a newer release, sealed under another
//! master key) is found before anything is written where a `serve` would look.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::store::{connect, migrate, sqlite_file};
use super::{StartError, seal};
use crate::app::restore::{self, RestoreError, Restored};
use crate::config::Config;
use crate::env::Env;
use crate::store::dump::{self, DumpError, Programs};
use crate::store::{OpenSettings, Schema, Store, StoreError};

/// Why a copy was not put back.
#[derive(Debug, thiserror::Error)]
pub enum PutBackError {
    /// The file cannot be read, or the place not be written.
    #[error("{path} cannot be used", path = .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is no copy.
    #[error("{path} is no copy that `nameplate backup` or pg_dump --format=custom makes", path = .path.display())]
    NoCopy {
        /// Which.
        path: PathBuf,
    },
    /// It is a copy of the other kind of database.
    #[error("{path} is a copy of a {of} database, and database.url names another kind: a copy goes back into the kind it came from", path = .path.display())]
    OtherKind {
        /// Which.
        path: PathBuf,
        /// The kind it came from.
        of: &'static str,
    },
    /// A database in memory.
    #[error("database.url names a database in memory, which nothing can be put into")]
    InMemory,
    /// Something is there.
    #[error(
        "nothing was put back: {what}; a copy never overwrites anything, so name or make an empty place, or move away what is there"
    )]
    Occupied {
        /// What.
        what: String,
    },
    /// It is not all of it.
    #[error(
        "{journal} lies beside it, so that the file alone is not whole: copy with `nameplate backup`, or put all its files in place and \
         declare that by `nameplate restored --yes`", journal = .journal.display()
    )]
    Journal {
        /// What lies there.
        journal: PathBuf,
    },
    /// It is cut off or damaged.
    #[error("{path} is damaged or cut off", path = .path.display())]
    Damaged {
        /// Which.
        path: PathBuf,
    },
    /// The same, as the database says it.
    #[error("{path} is damaged or cut off", path = .path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// What was said.
        source: StoreError,
    },
    /// PostgreSQL's programs.
    #[error("nothing was put back")]
    Dump(#[from] DumpError),
    /// The configuration, the schema, or the master key.
    #[error("nothing was put back")]
    Start(#[from] StartError),
    /// The database.
    #[error("the database cannot be used")]
    Store(#[from] StoreError),
    /// It cannot be declared.
    #[error("nothing was put back")]
    Declare(#[source] RestoreError),
    /// It is there, and was not declared.
    #[error(
        "the copy was put back, and could not be declared to be one: before anything runs on it, say nameplate restored --yes"
    )]
    Undeclared(#[source] RestoreError),
    /// The same.
    #[error(
        "the copy was put back, and could not be used: mend that, then say nameplate restored --yes before anything runs on it"
    )]
    Unusable(#[source] StartError),
}

/// So much is read of a file to know what it is: the header of SQLite's (<https://www.sqlite.org/fileformat.html> §1.3).
const HEADER: u64 = 100;
/// How SQLite's files begin.
const SQLITE: &[u8] = b"SQLite format 3\0";

/// Puts the copy where the configuration says that the database is.
pub async fn put_back(config: &Config, env: &Env, file: &Path, programs: Option<PathBuf>) -> Result<Restored, PutBackError> {
    let url = config.database.url.expose_str().unwrap_or_default();
    let (path, begins) = (file.to_owned(), beginning(file)?);
    let of_sqlite = match () {
        () if begins.starts_with(SQLITE) => true,
        () if begins.starts_with(dump::MAGIC) => false,
        () => return Err(PutBackError::NoCopy { path }),
    };
    match (url.starts_with("sqlite:"), of_sqlite) {
        (true, true) if is_short(file, &begins)? => Err(PutBackError::Damaged { path }),
        (true, true) => into_file(config, env, file, &sqlite_file(url).ok_or(PutBackError::InMemory)?).await,
        (false, false) => into_postgres(config, env, file, Programs::new(url, programs)?).await,
        (_, true) => Err(PutBackError::OtherKind { path, of: "SQLite" }),
        (_, false) => Err(PutBackError::OtherKind { path, of: "PostgreSQL" }),
    }
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> PutBackError {
    move |source| PutBackError::File { path: path.to_owned(), source }
}

fn beginning(file: &Path) -> Result<Vec<u8>, PutBackError> {
    let mut begins = Vec::new();
    let opened = File::open(file).map_err(at(file))?;
    opened.take(HEADER).read_to_end(&mut begins).map_err(at(file))?;
    Ok(begins)
}

/// Whether a SQLite file is shorter than it says: SQLite takes what is missing at its end for empty.
fn is_short(file: &Path, begins: &[u8]) -> Result<bool, PutBackError> {
    let Some(header) = begins.get(..100) else { return Ok(true) };
    let page = match u16::from_be_bytes([header[16], header[17]]) {
        1 => 65_536,
        size => u64::from(size),
    };
    let pages = u32::from_be_bytes([header[28], header[29], header[30], header[31]]);
    Ok(file.metadata().map_err(at(file))?.len() < page * u64::from(pages))
}

/// A file beside another: its name, and more.
fn beside(file: &Path, more: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(more);
    PathBuf::from(name)
}

/// SQLite's journals.
const JOURNALS: [&str; 3] = ["-wal", "-shm", "-journal"];

fn remove_staged(staged: &Path) -> Result<(), PutBackError> {
    for more in ["", JOURNALS[0], JOURNALS[1], JOURNALS[2]] {
        let path = beside(staged, more);
        match fs::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(at(&path)(e)),
            _ => {}
        }
    }
    Ok(())
}

/// The copy is made ready under another name beside its place, and takes that at once.
async fn into_file(config: &Config, env: &Env, file: &Path, place: &Path) -> Result<Restored, PutBackError> {
    for more in ["", JOURNALS[0], JOURNALS[1], JOURNALS[2]] {
        let path = beside(place, more);
        if path.symlink_metadata().is_ok() {
            return Err(PutBackError::Occupied { what: format!("{} is there already", path.display()) });
        }
    }
    for more in JOURNALS {
        let journal = beside(file, more);
        if more != "-shm" && fs::metadata(&journal).is_ok_and(|is| is.len() > 0) {
            return Err(PutBackError::Journal { journal });
        }
    }
    let staged = beside(place, ".restoring");
    remove_staged(&staged)?;
    let done = async {
        copy(file, &staged)?;
        let done = ready(config, env, file, &staged).await?;
        // Takes the name only where nothing has it.
        fs::hard_link(&staged, place).map_err(|e| match e.kind() {
            io::ErrorKind::AlreadyExists => PutBackError::Occupied { what: format!("{} is there already", place.display()) },
            _ => at(place)(e),
        })?;
        let directory = place.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(directory).and_then(|dir| dir.sync_all()).map_err(at(directory))?;
        Ok(done)
    };
    let done: Result<Restored, PutBackError> = done.await;
    let removed = remove_staged(&staged);
    let done = done?;
    removed.map(|()| done)
}

fn copy(file: &Path, staged: &Path) -> Result<(), PutBackError> {
    let mut from = File::open(file).map_err(at(file))?;
    let mut to = OpenOptions::new().write(true).create_new(true).mode(0o600).open(staged).map_err(at(staged))?;
    io::copy(&mut from, &mut to).and_then(|_| to.sync_all()).map_err(at(staged))
}

async fn ready(config: &Config, env: &Env, file: &Path, staged: &Path) -> Result<Restored, PutBackError> {
    let damaged = |source| PutBackError::Unreadable { path: file.to_owned(), source };
    let url = format!("sqlite:{}", staged.display());
    let store = Store::open(&OpenSettings { url, connections: 1 }).await.map_err(damaged)?;
    let done = async {
        if !store.is_whole().await.map_err(damaged)? {
            return Err(PutBackError::Damaged { path: file.to_owned() });
        }
        match store.schema().await.map_err(damaged)? {
            Schema::Newer => return Err(StartError::NewerSchema.into()),
            Schema::Blank => return Err(PutBackError::NoCopy { path: file.to_owned() }),
            Schema::Older | Schema::Current => migrate(&store).await?,
        }
        seal::open(&config.vault, &store, env).await?;
        restore::begin(&store, env).await.map_err(PutBackError::Declare)
    };
    let done = done.await;
    // The last one out writes the journal into the file.
    store.close().await;
    let done = done?;
    File::open(staged).and_then(|file| file.sync_all()).map_err(at(staged))?;
    match beside(staged, JOURNALS[0]).exists() {
        true => Err(PutBackError::Damaged { path: beside(staged, JOURNALS[0]) }),
        false => Ok(done),
    }
}

async fn into_postgres(config: &Config, env: &Env, file: &Path, programs: Programs) -> Result<Restored, PutBackError> {
    let store = connect(config).await?;
    let done = async {
        let what = "the database has tables or other things in it already".to_owned();
        let database = dump::empty(&store).await?.ok_or(PutBackError::Occupied { what })?;
        programs.check(file).await?;
        let (schema, keys) = programs.look(file).await?;
        if schema == Schema::Newer {
            return Err(StartError::NewerSchema.into());
        }
        seal::check(&config.vault, &keys)?;
        programs.put_back(file, &database).await?;
        migrate(&store).await.map_err(PutBackError::Unusable)?;
        seal::open(&config.vault, &store, env).await.map_err(PutBackError::Unusable)?;
        restore::begin(&store, env).await.map_err(PutBackError::Undeclared)
    };
    let done = done.await;
    store.close().await;
    done
}
