//! A PostgreSQL database as one file, and back, by the programs that it brings: they know every version, type and extension.
//!
//! The password goes to them by the environment, which nobody else can read, never by their arguments, which everybody can. What a
//! file holds is read before anything is written, and it is put back in one transaction: whole or not at all.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::str::FromStr as _;

use sqlx::ConnectOptions as _;
use sqlx::postgres::PgConnectOptions;
use tokio::process::Command;

use super::vault_keys::VaultKeyRow;
use super::{Schema, Store, StoreError};
use crate::model::percent;

/// How the file of [`Programs::dump`] begins.
pub const MAGIC: &[u8] = b"PGDMP";

/// Why a database was not copied or put back.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// The program is not there.
    #[error(
        "{program} is not here: install PostgreSQL's own programs, of the server's own version (on Debian: apt-get install \
         postgresql-client), or name their directory by --programs"
    )]
    Missing {
        /// Which.
        program: &'static str,
    },
    /// The program is older than the server.
    #[error(
        "{program} is older than the server ({said}): install the programs of the server's version (on Debian: apt-get install \
         postgresql-client-VERSION), or name their directory by --programs"
    )]
    Older {
        /// Which.
        program: &'static str,
        /// What it said.
        said: String,
    },
    /// The program could not be run.
    #[error("{program} could not be run")]
    Run {
        /// Which.
        program: &'static str,
        /// What was wrong.
        source: io::Error,
    },
    /// It refused.
    #[error("{program} said: {said}")]
    Refused {
        /// Which.
        program: &'static str,
        /// Its last words.
        said: String,
    },
    /// It does not say what it should.
    #[error("it is a copy of another database than Nameplate's, or not whole")]
    NotOurs,
    /// The database's address cannot be read.
    #[error("the database cannot be used")]
    Store(#[from] StoreError),
}

/// PostgreSQL's programs, and the database that they work on.
pub struct Programs {
    directory: Option<PathBuf>,
    variables: Vec<(&'static str, String)>,
}

impl Programs {
    /// Those in a directory, or else where the system finds them.
    pub fn new(url: &str, directory: Option<PathBuf>) -> Result<Programs, DumpError> {
        Ok(Programs { directory, variables: variables(url)? })
    }

    fn command(&self, program: &'static str) -> Command {
        let mut command = Command::new(self.directory.as_ref().map_or_else(|| program.into(), |dir| dir.join(program)));
        // Our own secrets are nothing to it, and what else says where a database is must not lead elsewhere.
        let ours = std::env::vars_os().map(|(name, _)| name).filter(|name| name.to_string_lossy().starts_with("NAMEPLATE_"));
        for name in ours.chain(["PGSERVICE", "PGHOSTADDR", "PGOPTIONS"].map(Into::into)) {
            command.env_remove(name);
        }
        command
            .envs(self.variables.iter().map(|(k, v)| (k, v)))
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        // What is said of an older program is recognised in English.
        command.env("LC_MESSAGES", "C").env_remove("LC_ALL");
        command
    }

    /// Copies the whole database, as of one moment, while it is in use.
    pub async fn dump(&self, into: File) -> Result<(), DumpError> {
        let mut command = self.command("pg_dump");
        command.args(["--format=custom", "--no-password", "--no-owner", "--no-privileges"]).stdout(into);
        run("pg_dump", &mut command).await.map(|_| ())
    }

    /// Reads the whole file and tells nothing of it: one that is cut off or damaged is found.
    pub async fn check(&self, file: &Path) -> Result<(), DumpError> {
        let mut command = self.command("pg_restore");
        command.args(["--file=/dev/null", "--"]).arg(file).stdout(Stdio::null());
        run("pg_restore", &mut command).await.map(|_| ())
    }

    /// Puts everything in the file into the database, in one transaction.
    pub async fn put_back(&self, file: &Path, database: &Database) -> Result<(), DumpError> {
        let mut command = self.command("pg_restore");
        command.args([
            "--exit-on-error",
            "--single-transaction",
            "--no-password",
            "--no-owner",
            "--no-privileges",
            "--no-comments",
        ]);
        // A name alone may be taken for a whole address.
        let name = database.0.replace('\\', r"\\").replace('\'', r"\'");
        command.args([&format!("--dbname=dbname='{name}'"), "--"]).arg(file).stdout(Stdio::null());
        run("pg_restore", &mut command).await.map(|_| ())
    }

    /// What the file holds: how its schema stands to this binary's, and what its vault is sealed under.
    pub async fn look(&self, file: &Path) -> Result<(Schema, Vec<VaultKeyRow>), DumpError> {
        let keys = self.tables(file, "vault_keys").await?;
        let [(ours, keys)] = &keys[..] else { return Err(DumpError::NotOurs) };
        // The queue's tables have a schema and migrations of their own.
        let migrations = self.tables(file, "_sqlx_migrations").await?;
        let migrations = migrations.iter().find(|(schema, _)| schema == ours).ok_or(DumpError::NotOurs)?;
        let applied: Option<Vec<i64>> = migrations.1.iter().map(|row| row.first()?.parse().ok()).collect();
        let mut applied = applied.ok_or(DumpError::NotOurs)?;
        applied.sort_unstable();
        let keys = keys.iter().map(vault_key).collect::<Option<_>>().ok_or(DumpError::NotOurs)?;
        Ok((Store::postgres_schema(&applied), keys))
    }

    /// The small tables of a name in the file, each under its schema, by columns in the order of its definition.
    async fn tables(&self, file: &Path, table: &str) -> Result<Vec<(String, Vec<Columns>)>, DumpError> {
        let mut command = self.command("pg_restore");
        command.args(["--data-only", &format!("--table={table}"), "--file=-", "--"]).arg(file).stdout(Stdio::piped());
        let said = run("pg_restore", &mut command).await?;
        let (text, mut all) = (String::from_utf8_lossy(&said.stdout).into_owned(), Vec::new());
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if let Some((schema, _)) = line.strip_prefix("COPY ").and_then(|rest| rest.split_once('.')) {
                let rows = lines.by_ref().take_while(|line| *line != "\\.");
                all.push((schema.to_owned(), rows.map(|line| line.split('\t').map(str::to_owned).collect()).collect()));
            }
        }
        Ok(all)
    }
}

/// One row of a table, as COPY writes it.
type Columns = Vec<String>;

fn vault_key(row: &Columns) -> Option<VaultKeyRow> {
    let canary = row.get(1)?.strip_prefix("\\\\x")?;
    let octet = |two: &[u8]| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok();
    let canary = canary.as_bytes().chunks(2).map(octet).collect::<Option<_>>()?;
    Some(VaultKeyRow { version: row.first()?.parse().ok()?, canary })
}

/// The name of the database that something is put into.
pub struct Database(String);

/// What is in a database beside what PostgreSQL put there.
const THINGS: &str = "SELECT current_database()::text, (SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
     WHERE n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%')";

/// The database of an open store, if nothing is in it yet.
pub async fn empty(store: &Store) -> Result<Option<Database>, StoreError> {
    let pool = store.postgres_pool().ok_or_else(|| StoreError::unavailable("this is no PostgreSQL"))?;
    let (name, things): (String, i64) = sqlx::query_as(THINGS).fetch_one(pool).await?;
    Ok((things == 0).then_some(Database(name)))
}

async fn run(program: &'static str, command: &mut Command) -> Result<Output, DumpError> {
    let child = command.spawn().map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => DumpError::Missing { program },
        _ => DumpError::Run { program, source },
    })?;
    let output = child.wait_with_output().await.map_err(|source| DumpError::Run { program, source })?;
    if output.status.success() {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).take(LINES).collect();
    let said = if said.is_empty() { output.status.to_string() } else { said.join("; ") };
    Err(match said.contains("server version mismatch") {
        true => DumpError::Older { program, said },
        false => DumpError::Refused { program, said },
    })
}

/// So many lines of what a program says are told.
const LINES: usize = 4;

/// An address as the variables that PostgreSQL's programs read.
fn variables(url: &str) -> Result<Vec<(&'static str, String)>, StoreError> {
    let options = PgConnectOptions::from_str(url)?;
    let socket = options.get_socket().map(|socket| socket.display().to_string());
    // Of the driver's own form only what has no other way out: it fits no name into an address that needs to be escaped there.
    let url = options.clone().username("name").host("localhost").database("name").to_url_lossy();
    let plain = |text: &str| percent::decoded(text);
    let mut all = vec![("PGCONNECT_TIMEOUT", "10".to_owned()), ("PGAPPNAME", "nameplate".to_owned())];
    let mut tell = |name, value: Option<String>| all.extend(value.filter(|v| !v.is_empty()).map(|v| (name, v)));
    tell("PGHOST", Some(socket.unwrap_or_else(|| options.get_host().trim_matches(['[', ']']).to_owned())));
    tell("PGPORT", Some(options.get_port().to_string()));
    tell("PGUSER", Some(options.get_username().to_owned()));
    tell("PGPASSWORD", url.password().map(plain));
    tell("PGDATABASE", options.get_database().map(str::to_owned));
    for (key, value) in url.query_pairs() {
        let name = match &*key {
            "sslmode" => "PGSSLMODE",
            "sslrootcert" => "PGSSLROOTCERT",
            "sslcert" => "PGSSLCERT",
            "sslkey" => "PGSSLKEY",
            _ => continue,
        };
        // The driver shows a path with a word before it.
        tell(name, Some(value.strip_prefix("file: ").unwrap_or(&value).to_owned()));
    }
    let told = |name| all.iter().any(|(told, _)| *told == name);
    if all.contains(&("PGSSLMODE", "verify-full".to_owned())) && !told("PGSSLROOTCERT") {
        // As the driver does: against the roots that everybody trusts.
        all.push(("PGSSLROOTCERT", "system".to_owned()));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(url: &str) -> Vec<String> {
        variables(url).unwrap().into_iter().skip(2).map(|(k, v)| format!("{k}={v}")).collect()
    }

    #[test]
    fn an_address_is_told_by_variables() {
        let all = of("postgres://np:s%40cr%2Fet@db.example:6432/names?sslmode=verify-full&sslrootcert=/etc/ca.pem");
        assert!(
            all.starts_with(
                &["PGHOST=db.example", "PGPORT=6432", "PGUSER=np", "PGPASSWORD=s@cr/et", "PGDATABASE=names"]
                    .map(String::from)
            ),
            "{all:?}"
        );
        assert!(
            all.contains(&"PGSSLMODE=verify-full".to_owned()) && all.contains(&"PGSSLROOTCERT=/etc/ca.pem".to_owned()),
            "{all:?}"
        );
        let all = of("postgres://np@localhost/names?host=/run/postgresql");
        assert!(
            all.contains(&"PGHOST=/run/postgresql".to_owned()) && all.contains(&"PGDATABASE=names".to_owned()),
            "{all:?}"
        );
    }
}
