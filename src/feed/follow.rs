//! Keeping a replica in step: enrol, snapshot, deltas, copy on disk, look at what is served, acknowledge.
//!
//! The order is the promise: a position is acknowledged after it is in memory and on disk and its certificates were looked at.
//! Whatever fails is tried again with growing, jittered waits; meanwhile the replica serves what it has.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::client::{ClientError, FeedClient};
use super::copy::{Copy, CopyError, Restored};
use super::member::{Member, MemberError};
use super::replica::Replica;
use super::wire::{Exception, Message, WireError};
use crate::env::Env;
use crate::model::feed::{Deltas, Entry, Position, Snapshot};
use crate::model::feed_apply::{Book, Served};
use crate::model::id::CertificateId;
use crate::telemetry::Chain;
use crate::vault::distribution::{DistributionKey, Packet, Wrapped};

/// How long one question for changes waits.
const LONG_POLL: Duration = Duration::from_secs(20);
/// A reader counts while it was heard of within 30 s: three tries.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// First and longest wait between tries.
const FIRST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Looks at what a reader really serves.
#[async_trait]
pub trait Observer: Send + Sync + 'static {
    /// These certificates changed, or all may have: what was derived from them is stale.
    fn changed(&self, certificates: Option<&[CertificateId]>);
    /// Looks at these names' certificates.
    async fn observe(&self, served: Vec<Served>);
    /// All certificates that are held and not served; looks again at those known to be.
    async fn exceptions(&self) -> Vec<Exception>;
}

/// Why following cannot even begin.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// The reader's own file.
    #[error("this reader of the feed cannot start")]
    Member(#[from] MemberError),
    /// The client.
    #[error("no line to the control plane can be made")]
    Client(#[from] ClientError),
    /// The disk.
    #[error("the last good copy cannot be read")]
    Copy(#[from] CopyError),
}

/// Why one step failed.
#[derive(Debug, thiserror::Error)]
enum StepError {
    #[error("asking the control plane failed")]
    Client(#[from] ClientError),
    #[error("the last good copy was not written, so nothing is acknowledged")]
    Copy(#[from] CopyError),
    #[error("the publisher answered a question for everything with something else")]
    NotASnapshot,
}

/// A reader of the feed before it runs.
pub struct Follower {
    member: Member,
    client: FeedClient,
    copy: Copy,
    replica: Arc<Replica>,
    wrapped: Vec<Wrapped>,
    /// Whether the book comes from a copy that an earlier build wrote.
    outdated: bool,
    env: Env,
}

impl Follower {
    /// Opens the state directory: who this reader is, and its last good copy, which is served at once.
    pub fn open(state_dir: &Path, join_token: Option<&str>, env: Env) -> Result<Follower, FollowError> {
        let member = Member::open_or_join(state_dir, join_token, &env)?;
        let client = FeedClient::new(&member)?;
        let replica = Arc::new(Replica::new(env.clone()));
        let mut copy = Copy::new(state_dir, env.clone());
        let (mut wrapped, mut outdated) = (Vec::new(), false);
        match copy.load(&member.key) {
            Ok(Some(Restored { book, keys, outdated: old })) => {
                outdated = old;
                replica.learn_keys(keys.iter().filter_map(|w| member.key.unwrap(w).ok()));
                replica.replace(book);
                wrapped = keys;
            }
            Ok(None) => {}
            // A broken copy is as good as none: refusing to start would help nobody.
            Err(error @ CopyError::Broken(_)) => tracing::error!(error = &error as &dyn Error, "the last good copy is lost"),
            Err(error) => return Err(error.into()),
        }
        Ok(Follower { member, client, copy, replica, wrapped, outdated, env })
    }

    /// The book, for look-ups.
    pub fn replica(&self) -> Arc<Replica> {
        Arc::clone(&self.replica)
    }

    /// The line to the publisher, for single questions.
    pub fn client(&self) -> FeedClient {
        self.client.clone()
    }

    /// Follows until told to stop.
    pub async fn run(mut self, name: &str, observer: Arc<dyn Observer>, stop: CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = async {
                self.enrol(name).await;
                let confirm = Confirm {
                    client: self.client.clone(),
                    replica: Arc::clone(&self.replica),
                    observer,
                    position: Mutex::default(),
                };
                let env = self.env.clone();
                tokio::join!(Running { follower: self, confirm: &confirm, confirmed: None }.run(), confirm.beat(&env));
            } => {}
        }
    }

    async fn enrol(&mut self, name: &str) {
        let mut tries = 0;
        while let Err(error) = self.client.enrol(&mut self.member, name).await {
            self.replica.troubled(Chain(&error).to_string());
            tracing::warn!(error = &error as &dyn Error, "this edge is not enrolled; trying again");
            self.env.sleep(backoff(&self.env, tries)).await;
            tries += 1;
        }
    }
}

/// Sends acknowledgements, one at a time and never an older one after a newer one.
struct Confirm {
    client: FeedClient,
    replica: Arc<Replica>,
    observer: Arc<dyn Observer>,
    position: Mutex<Option<Position>>,
}

impl Confirm {
    async fn beat(&self, env: &Env) {
        loop {
            // What is confirmed first is what the copy holds, not that there is nothing yet.
            env.sleep(HEARTBEAT).await;
            if let Err(error) = self.send(None).await {
                tracing::warn!(error = &error as &dyn Error, "the control plane did not hear this edge's heartbeat");
            }
        }
    }

    async fn send(&self, newer: Option<Position>) -> Result<(), ClientError> {
        let exceptions = self.observer.exceptions().await;
        let mut position = self.position.lock().await;
        *position = newer.or(*position);
        let left_behind = self.client.ack(*position, exceptions).await?;
        self.replica.heard(left_behind);
        Ok(())
    }
}

struct Running<'a> {
    follower: Follower,
    confirm: &'a Confirm,
    confirmed: Option<Position>,
}

impl Running<'_> {
    async fn run(mut self) {
        // The copy is on disk: once looked at, its position may be confirmed; whatever is newer follows.
        let mut saved = self.follower.replica.position();
        self.confirm.observer.observe(self.follower.replica.some_served()).await;
        let mut tries = 0;
        loop {
            match self.step(&mut saved).await {
                Ok(()) => {
                    tries = 0;
                    self.follower.replica.current();
                }
                Err(error) => {
                    self.follower.replica.troubled(Chain(&error).to_string());
                    let stopped = matches!(
                        error,
                        StepError::Client(ClientError::Wire(WireError::UnknownFormat { .. } | WireError::Payload(_)))
                    );
                    if stopped {
                        tracing::error!(
                            error = &error as &dyn Error,
                            "the feed is newer than this edge; its cursor stands still"
                        );
                        tries = u32::MAX;
                    } else if tries == 0 {
                        // A connection ends now and then: when the control plane restarts, or stops before this edge does.
                        tracing::info!(error = &error as &dyn Error, "the feed was interrupted; asking again");
                    } else {
                        tracing::warn!(error = &error as &dyn Error, "this edge does not follow the feed; trying again");
                    }
                    self.follower.env.sleep(backoff(&self.follower.env, tries)).await;
                    tries = tries.saturating_add(1);
                }
            }
        }
    }

    /// One question and all that follows from its answer.
    async fn step(&mut self, saved: &mut Option<Position>) -> Result<(), StepError> {
        if *saved != self.confirmed {
            self.confirm.send(*saved).await?;
            self.confirmed = *saved;
        }
        let message = match self.follower.replica.position() {
            None => return self.take_snapshot(saved).await,
            Some(_) if self.follower.outdated => return self.take_snapshot(saved).await,
            Some(position) if Some(position) != *saved => {
                // What is in memory never reached the disk: write it whole.
                self.write_copy(None)?;
                *saved = Some(position);
                return Ok(());
            }
            Some(position) => self.follower.client.changes(position, LONG_POLL).await?,
        };
        match message {
            Message::Deltas(deltas) if deltas.entries.is_empty() && Some(deltas.upto) == saved.map(|s| s.seq) => Ok(()),
            Message::Deltas(deltas) => self.take_deltas(deltas, saved).await,
            _ => self.take_snapshot(saved).await,
        }
    }

    async fn take_snapshot(&mut self, saved: &mut Option<Position>) -> Result<(), StepError> {
        let (snapshot, recovery) = match self.follower.client.snapshot().await? {
            Message::Snapshot(snapshot) => (snapshot, false),
            Message::Recovery(snapshot) => (snapshot, true),
            _ => return Err(StepError::NotASnapshot),
        };
        let Snapshot { position, .. } = snapshot;
        self.learn_keys(&snapshot.entries, recovery).await?;
        tracing::info!(
            recovery,
            epoch = position.epoch,
            seq = position.seq,
            entries = snapshot.entries.len(),
            "took a snapshot of the feed"
        );
        let before = self.follower.replica.with_book(Clone::clone).filter(|_| recovery);
        // Told before it is taken: what was not told is told again with the next snapshot.
        if let Some(newer) = before.as_ref().map(|book| book.newer_than(&snapshot)).filter(|newer| !newer.is_empty()) {
            let news = self.follower.client.recollect(&newer).await?;
            tracing::info!(hosts = newer.len(), news, "reminded a restored control plane of what it does not know");
        }
        let book = match before {
            Some(before) => before.with_recovered(snapshot),
            None => Book::from_snapshot(snapshot),
        };
        let served = self.follower.replica.replace(book);
        self.follower.outdated = false;
        self.confirm.observer.changed(None);
        self.write_copy(None)?;
        self.settle(served, position, saved).await
    }

    async fn take_deltas(&mut self, deltas: Deltas, saved: &mut Option<Position>) -> Result<(), StepError> {
        let keys_changed = self.learn_keys(&deltas.entries, true).await?;
        let position = Position { epoch: deltas.epoch, seq: deltas.upto };
        match self.follower.replica.apply(deltas.clone()) {
            Some(Ok((applied, served))) => {
                if !applied.certificates.is_empty() {
                    self.confirm.observer.changed(Some(&applied.certificates));
                }
                for subject in applied.refused {
                    tracing::error!(subject, "the feed sent an older entry than the one at hand; it was refused");
                }
                self.write_copy(Some((deltas, keys_changed)))?;
                self.settle(served, position, saved).await
            }
            Some(Err(why)) => {
                tracing::warn!(error = &why as &dyn Error, "changes do not connect; taking a snapshot");
                self.take_snapshot(saved).await
            }
            None => self.take_snapshot(saved).await,
        }
    }

    async fn settle(
        &mut self,
        served: Vec<Served>,
        position: Position,
        saved: &mut Option<Position>,
    ) -> Result<(), StepError> {
        if !served.is_empty() {
            self.confirm.observer.observe(served).await;
        }
        *saved = Some(position);
        self.confirm.send(*saved).await?;
        self.confirmed = *saved;
        Ok(())
    }

    /// Fetches the distribution keys when an entry names one that is not at hand. Those of an earlier epoch are kept while
    /// certificates that only this edge knows may need them.
    async fn learn_keys(&mut self, entries: &[Entry], keep: bool) -> Result<bool, StepError> {
        let follower = &mut self.follower;
        let unknown = entries.iter().any(|entry| match entry {
            Entry::Certificate(c) => c.material.as_ref().is_some_and(|m| {
                Packet::try_from(m.sealed_key.clone()).is_ok_and(|p| !follower.replica.knows_key(&p.key_id()))
            }),
            _ => false,
        });
        if unknown {
            let before = std::mem::replace(&mut follower.wrapped, follower.client.keys().await?);
            let own = &follower.member.key;
            let fresh: Vec<_> = follower.wrapped.iter().filter_map(|w| own.unwrap(w).ok()).map(|key| key.id()).collect();
            if keep {
                let is_older = |w: &Wrapped| own.unwrap(w).is_ok_and(|key| !fresh.contains(&key.id()));
                follower.wrapped.extend(before.into_iter().filter(is_older));
            }
            let keys: Vec<DistributionKey> =
                follower.wrapped.iter().filter_map(|w| follower.member.key.unwrap(w).ok()).collect();
            follower.replica.learn_keys(keys);
        }
        Ok(unknown)
    }

    /// Writes the copy on a thread that may block; deltas are appended, nothing given means all of it.
    fn write_copy(&mut self, step: Option<(Deltas, bool)>) -> Result<(), StepError> {
        let Follower { copy, replica, member, wrapped, .. } = &mut self.follower;
        let written = blocking(|| {
            replica.with_book(|book| match step {
                Some((deltas, keys_changed)) => copy.append(&member.key, &deltas, book, wrapped, keys_changed),
                None => copy.replace(&member.key, book, wrapped),
            })
        });
        Ok(written.unwrap_or(Ok(()))?)
    }
}

/// Runs what blocks without holding up other tasks, where the runtime has threads to do so.
fn blocking<T>(act: impl FnOnce() -> T) -> T {
    match tokio::runtime::Handle::current().runtime_flavor() {
        tokio::runtime::RuntimeFlavor::MultiThread => tokio::task::block_in_place(act),
        _ => act(),
    }
}

/// Doubling waits with a random half, so that many readers do not come back at once.
fn backoff(env: &Env, tries: u32) -> Duration {
    let wait = FIRST_WAIT.saturating_mul(1 << tries.min(8)).min(LONGEST_WAIT);
    wait.mul_f64(0.5 + f64::from(u16::from_be_bytes(env.draw())) / f64::from(u16::MAX) / 2.0)
}
