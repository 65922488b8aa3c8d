//! The worker of a process: restarted when the database threw it out, drained when the process stops.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use apalis::layers::WorkerBuilderExt as _;
use apalis::prelude::{BackendExt as _, ParallelizeExt as _, WorkerBuilder, WorkerError};
use apalis_postgres::PostgresStorage;
use apalis_sqlite::SqliteStorage;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::bell::Listen;
use super::table::QUEUE;
use super::{Alarm, Queue};
use crate::jobs::Step;
use crate::model::id::DomainId;
use crate::telemetry::Chain;

/// Heartbeats that a worker may miss before others take its alarms.
const MISSED_HEARTBEATS: usize = 6;

/// The pause before a worker starts again, doubled by each fall that follows soon on the last.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// How long an idle worker may take to tell the database what it did last.
pub(super) const LAST_WORDS: Duration = Duration::from_secs(2);

/// A worker that ran this long had recovered.
const RECOVERED: Duration = Duration::from_secs(60);

/// What a worker is there for: steps that run, and those that may no longer start.
pub(super) struct Duty {
    step: Arc<dyn Step>,
    /// No step starts any more.
    stop: CancellationToken,
    /// Running steps are dropped.
    cut: CancellationToken,
    running: TaskTracker,
}

impl Duty {
    pub(super) fn new(step: Arc<dyn Step>, stop: CancellationToken) -> Self {
        Duty { step, stop, cut: CancellationToken::new(), running: TaskTracker::new() }
    }

    /// Answers one alarm. Never fails: the queue's ways of dealing with failure lose alarms or ring them without end.
    async fn answer(&self, alarm: Alarm) {
        // Counted before the look at `stop`, so that a drain that began in between waits for this one.
        let _running = self.running.token();
        if self.stop.is_cancelled() {
            // The row stays due: a sweep, here after the next start or in another process, sets a new alarm.
            return;
        }
        let id = match alarm.domain_id.parse::<DomainId>() {
            Ok(id) => id,
            Err(e) => {
                tracing::warn!(error = %e, "an alarm names no domain; it is dropped");
                return;
            }
        };
        let step = AssertUnwindSafe(self.step.advance(&id)).catch_unwind();
        tokio::select! {
            biased;
            () = self.cut.cancelled() => tracing::warn!(domain.id = %id, "a step was cut off by the end of the process"),
            outcome = step => if outcome.is_err() {
                tracing::error!(domain.id = %id, "a step panicked; the sweep will look at the domain again");
            },
        }
    }

    /// Waits for the running steps, then drops them.
    async fn drain(&self, queue: &Queue) {
        self.running.close();
        tokio::select! {
            () = self.running.wait() => {}
            () = queue.env.sleep(queue.settings.grace) => {
                self.cut.cancel();
                self.running.wait().await;
            }
        }
    }
}

/// Runs until the duty's `stop`. Order matters: apalis is told to stop only when no step runs. Stopping, it leaves a look
/// that is under way unpolled, with its place in the line for the connection, until all its handlers ended; a handler
/// waiting for that connection never would.
pub(super) async fn work(queue: &Queue, duty: Arc<Duty>) {
    // Whoever drops this drops the worker, and the steps that it has spawned.
    let _cut = duty.cut.clone().drop_guard();
    let end = CancellationToken::new();
    let mut keeper = AbortOnDropHandle::new(tokio::spawn(keep_running(queue.clone(), Arc::clone(&duty), end.clone())));
    duty.stop.cancelled().await;
    duty.drain(queue).await;
    end.cancel();
    tokio::select! {
        _ = &mut keeper => {}
        () = queue.env.sleep(LAST_WORDS) => {
            tracing::warn!("the queue's worker did not end in time; it is dropped");
        }
    }
}

async fn keep_running(queue: Queue, duty: Arc<Duty>, end: CancellationToken) {
    let mut pause = PAUSE;
    while !end.is_cancelled() {
        let began = queue.env.now();
        // A task of its own: a panic in the queue's machinery ends this run, not the process's work.
        let run = AbortOnDropHandle::new(tokio::spawn(run_once(&queue, Arc::clone(&duty), end.clone())));
        match run.await {
            Ok(Ok(())) if end.is_cancelled() => return,
            Ok(Ok(())) => tracing::warn!("the queue's worker ended by itself; it starts again"),
            Ok(Err(e)) => tracing::warn!(error = %Chain(&e), "the queue's worker failed; it starts again"),
            Err(e) => tracing::error!(error = %Chain(&e), "the queue's worker panicked; it starts again"),
        }
        if queue.env.now().since(began) >= RECOVERED {
            pause = PAUSE;
        }
        tokio::select! {
            () = end.cancelled() => return,
            () = queue.env.sleep(pause) => {}
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// One life of the worker, under a name that no other has or had: a name that lived lately is refused.
fn run_once(queue: &Queue, duty: Arc<Duty>, end: CancellationToken) -> BoxFuture<'static, Result<(), WorkerError>> {
    let name = format!("worker-{:x}-{}", queue.env.now().micros(), queue.env.draw_hex(8));
    let handler = move |alarm: Alarm| {
        let duty = Arc::clone(&duty);
        async move {
            duty.answer(alarm).await;
            Ok::<(), Infallible>(())
        }
    };
    let listen = Listen::new(queue.env.clone(), Arc::clone(&queue.bell));
    let ended = async move {
        end.cancelled().await;
        Ok::<(), WorkerError>(())
    };
    // One alarm a fetch: while fetched ones wait in a buffer a worker sends no heartbeat, and others run them again.
    // No lock of its own: the fetch has claimed the alarm already.
    macro_rules! run {
        ($storage:expr, $config:expr) => {
            WorkerBuilder::new(name)
                .backend(
                    $storage
                        .with_config(
                            $config
                                .queue(QUEUE)
                                .batch_size(1)
                                .heartbeat_interval(queue.settings.heartbeat)
                                .missed_heartbeats(MISSED_HEARTBEATS)
                                .lock_tasks(false),
                        )
                        .poll_with_strategy(listen),
                )
                .concurrency(queue.settings.concurrency)
                .parallelize(tokio::spawn)
                .build(handler)
                .run_until(ended)
                .boxed()
        };
    }
    if let Some(pool) = queue.store.sqlite_pool() {
        run!(SqliteStorage::<Alarm>::new(pool), apalis_sqlite::Config::default())
    } else if let Some(pool) = queue.store.postgres_pool() {
        run!(PostgresStorage::<Alarm>::new(pool), apalis_postgres::Config::default())
    } else {
        std::future::ready(Ok(())).boxed()
    }
}
