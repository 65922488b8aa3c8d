//! Taking a file as it arrives.

use std::time::Duration;

use aws_lc_rs::digest::{Context, SHA256};

use crate::app::tokens::{Caller, Principal};
use crate::app::{App, AppError};
use crate::mint;
use crate::model::bulk::{FileError, Format, ImportState, Reader, Row, RowRules};
use crate::model::hostname::NameRules;
use crate::model::id::{ImportId, TenantId};
use crate::model::moment::Moment;
use crate::store::bulk::{self, Import};
use crate::store::bulk_rows::{self, Refusal, Staged};
use crate::store::{StoreError, Tx};

/// Rows staged in one transaction.
const BATCH: usize = 500;
/// However few there are, rows are staged so often: it also says that the sender is still there.
const AT_LEAST: Duration = Duration::from_secs(20);
/// An import that received nothing for so long is given up.
pub(super) const STALE: Duration = Duration::from_secs(300);
/// How long a key stands for its import.
const KEY_LIFE: Duration = Duration::from_secs(24 * 3600);
/// Imports of one sender that are not over.
const MOST_OPEN: i64 = 20;

/// Verdicts of imports that are over are kept as far as one sender's younger imports have no more rows than this.
const KEPT_ROWS: i64 = 2_000_000;

/// Why a file was not received. Nothing of it is kept.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// It is none.
    #[error(transparent)]
    File(#[from] FileError),
    /// It is too large.
    #[error("the file is larger than {0} bytes, which is the most (imports.max_bytes); cut it in parts")]
    TooLarge(u64),
    /// Somebody gave it up in the meantime.
    #[error("the import was given up while it arrived; send the file again")]
    GivenUp,
    /// Its sender has too many imports under way.
    #[error("{0} imports of this sender are not over yet; wait for them, or cancel some")]
    TooMany(i64),
    /// The request with its key is under way.
    #[error("a file is arriving under the same key")]
    InFlight,
    /// Its key stands for another file.
    #[error("the key stands for another file, or for other options")]
    OtherFile,
    /// Not the sender's fault.
    #[error(transparent)]
    App(#[from] AppError),
}

impl From<StoreError> for ReceiveError {
    fn from(e: StoreError) -> Self {
        ReceiveError::App(e.into())
    }
}

/// What is to be imported.
#[derive(Clone, Debug)]
pub struct NewImport {
    /// What people call it.
    pub name: String,
    /// How it is written.
    pub format: Format,
    /// Only tell what would become of each row.
    pub dry_run: bool,
    /// Add tenants that are named and not there; for operators.
    pub create_tenants: bool,
    /// Whose the rows are that name nobody.
    pub default_tenant: Option<TenantId>,
    /// What a second sending is known by.
    pub idempotency_key: Option<String>,
    /// Which hostnames may be claimed.
    pub rules: NameRules,
    /// Rows at most.
    pub max_rows: u64,
    /// Bytes at most.
    pub max_bytes: u64,
}

/// A file that arrives.
pub struct Receiving {
    app: App,
    reader: Reader,
    digest: Context,
    bytes: u64,
    max_bytes: u64,
    read: Vec<Row>,
    /// What it was sent as before, when it only has to be the same again.
    before: Option<Import>,
    id: ImportId,
    principal: String,
    staged: i64,
    unreadable: i64,
    flushed_at: Moment,
    /// Whether it was completed or given up: dropped before, its sender has vanished.
    over: bool,
}

/// How a received file counts.
#[derive(Debug)]
pub enum Begun {
    /// It is imported now.
    New(Import),
    /// It was received before, under the same key.
    Before(Import),
}

fn principal_tenant(principal: &Principal) -> Option<&TenantId> {
    match principal {
        Principal::Operator => None,
        Principal::Tenant(own) => Some(own),
    }
}

/// Begins to receive a file. What is wrong is told before its first byte is read.
pub async fn begin(app: &App, caller: &Caller, actor: &str, new: NewImport) -> Result<Receiving, ReceiveError> {
    let now = app.env.now();
    let id = mint!(app.env, ImportId);
    let principal = caller.principal.key();
    let own = principal_tenant(&caller.principal);
    let row = bulk::NewImport {
        id: &id,
        tenant_id: own,
        principal,
        actor,
        name: &new.name,
        format: new.format,
        dry_run: new.dry_run,
        create_tenants: new.create_tenants && own.is_none(),
        default_tenant: new.default_tenant.as_ref().or(own),
        idempotency_key: new.idempotency_key.as_deref(),
    };
    let rules = RowRules { names: new.rules, tenant_known: row.default_tenant.is_some() };
    let mut receiving = Receiving {
        app: app.clone(),
        reader: Reader::new(new.format, rules, new.max_rows),
        digest: Context::new(&SHA256),
        bytes: 0,
        max_bytes: new.max_bytes,
        read: Vec::with_capacity(BATCH),
        before: None,
        id: id.clone(),
        principal: principal.to_owned(),
        staged: 0,
        unreadable: 0,
        flushed_at: now,
        over: true,
    };
    let mut tx = app.store.begin().await?;
    receiving.before = match &row.idempotency_key {
        Some(key) => sent_before(&mut tx, &row, key, now).await?,
        None => None,
    };
    if receiving.before.is_none() {
        let open = bulk::open_of(&mut tx, principal).await?;
        if open >= MOST_OPEN {
            return Err(ReceiveError::TooMany(open));
        }
        if !bulk::insert(&mut tx, &row, now).await? {
            // Somebody took the key between our question and our answer.
            return Err(ReceiveError::InFlight);
        }
        // From here on it may be there, even where nobody hears of the commit any more.
        receiving.over = false;
        tx.commit().await?;
    }
    Ok(receiving)
}

/// What was sent under this key before; a key whose time is up, or whose file never came whole, is free.
async fn sent_before(
    tx: &mut Tx,
    new: &bulk::NewImport<'_>,
    key: &str,
    now: Moment,
) -> Result<Option<Import>, ReceiveError> {
    let Some(before) = bulk::by_key(tx, new.principal, key).await? else { return Ok(None) };
    let over = now.since(before.created_at) >= KEY_LIFE;
    match before.state {
        ImportState::Receiving if now.since(before.touched_at) < STALE => Err(ReceiveError::InFlight),
        ImportState::Receiving | ImportState::Broken => {
            bulk::free_key(tx, &before.id).await.map(|()| None).map_err(Into::into)
        }
        _ if over => bulk::free_key(tx, &before.id).await.map(|()| None).map_err(Into::into),
        // A dry run that was started is no dry run any more, but was asked for as one.
        _ if before.format != new.format
            || before.dry_run && !new.dry_run
            || before.create_tenants != new.create_tenants
            || before.default_tenant.as_ref() != new.default_tenant =>
        {
            Err(ReceiveError::OtherFile)
        }
        _ => Ok(Some(before)),
    }
}

impl Receiving {
    /// Takes a piece of the file.
    pub async fn take(&mut self, piece: &[u8]) -> Result<(), ReceiveError> {
        self.bytes = self.bytes.saturating_add(u64::try_from(piece.len()).unwrap_or(u64::MAX));
        if self.bytes > self.max_bytes {
            return Err(ReceiveError::TooLarge(self.max_bytes));
        }
        self.digest.update(piece);
        if self.before.is_some() {
            return Ok(());
        }
        // A piece may hold more rows than one transaction should.
        for part in piece.chunks(16 * 1024) {
            self.reader.feed(part, &mut self.read)?;
            if self.read.len() >= BATCH || self.app.env.now().since(self.flushed_at) >= AT_LEAST {
                self.stage().await?;
            }
        }
        Ok(())
    }

    /// The file is whole: from here on it counts, or nothing of it stays.
    pub async fn complete(mut self) -> Result<Begun, ReceiveError> {
        let settled = self.settle().await;
        if settled.is_err() {
            self.give_up().await;
        } else {
            self.over = true;
        }
        settled
    }

    async fn settle(&mut self) -> Result<Begun, ReceiveError> {
        if let Some(before) = self.before.take() {
            let digest = hex(self.digest.clone().finish().as_ref());
            return if before.digest.as_ref() == Some(&digest) {
                Ok(Begun::Before(before))
            } else {
                Err(ReceiveError::OtherFile)
            };
        }
        self.reader.finish(&mut self.read)?;
        self.stage().await?;
        let digest = hex(self.digest.clone().finish().as_ref());
        let app = &self.app;
        app.boundary.cross("before the file counts").await;
        let mut tx = app.store.begin().await?;
        let import = bulk::complete(&mut tx, &self.id, &digest, app.env.now()).await?.ok_or(ReceiveError::GivenUp)?;
        bulk::forget_beyond(&mut tx, &self.principal, KEPT_ROWS).await?;
        let bell = app.bells.imports.clone();
        tx.after_commit(move || bell.notify_one());
        tx.commit().await?;
        app.boundary.cross("the file counts").await;
        tracing::info!(import.id = %import.id, rows = import.rows, bytes = self.bytes, dry_run = import.dry_run, "a file of names was received");
        Ok(Begun::New(import))
    }

    /// Gives up what came so far.
    pub async fn give_up(mut self) {
        self.over = true;
        if self.before.is_none() {
            give_up(self.app.clone(), self.id.clone()).await;
        }
    }

    async fn stage(&mut self) -> Result<(), ReceiveError> {
        let rows: Vec<Staged> = self
            .read
            .drain(..)
            .zip(self.staged + 1..)
            .map(|(row, n)| {
                let (hostname, refusal) = match row.read {
                    Ok(hostname) => (Some(hostname), None),
                    Err(p) => (None, Some(Refusal { code: p.code.into(), detail: p.detail, suggestion: p.suggestion })),
                };
                let line = i64::try_from(row.line).unwrap_or(i64::MAX);
                Staged { n, line, tenant: row.tenant, method: row.method, typed: row.typed, hostname, refusal }
            })
            .collect();
        self.staged += i64::try_from(rows.len()).unwrap_or(i64::MAX);
        self.unreadable += i64::try_from(rows.iter().filter(|row| row.refusal.is_some()).count()).unwrap_or(i64::MAX);
        self.flushed_at = self.app.env.now();
        let mut tx = self.app.store.begin().await?;
        // The import first: whoever gives it up waits, or is seen.
        if !bulk::arrived(&mut tx, &self.id, self.staged, self.unreadable, self.flushed_at).await? {
            return Err(ReceiveError::GivenUp);
        }
        bulk_rows::stage(&mut tx, &self.id, &rows).await?;
        self.app.boundary.cross("before rows are staged").await;
        tx.commit().await?;
        self.app.boundary.cross("rows staged").await;
        Ok(())
    }
}

/// A request ends where its sender vanishes, at any await: what came so far is given up then, too, so that its key is free for
/// another try. Where the file counts already this changes nothing.
impl Drop for Receiving {
    fn drop(&mut self) {
        if self.over || self.before.is_some() {
            return;
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(give_up(self.app.clone(), self.id.clone()));
        }
    }
}

async fn give_up(app: App, id: ImportId) {
    if let Err(error) = bulk::give_up(&app.store, &id).await {
        tracing::warn!(error = %crate::telemetry::Chain(&error), import.id = %id,
            "a file that broke off could not be given up; that is done when it is stale");
    }
    app.bells.imports.notify_one();
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
