//! One loop in place of threads: a task runs until it waits for the CA, then the next one does.
//!
//! A task that waits for an answer stands at the [`Gate`]; the loop takes it off the floor until its time has come. Since only
//! one task runs at a time, one seed makes one history, whatever the store's own threads do. A task can also be cut at a
//! boundary, as a process is by a power failure: it is dropped there.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use tokio::sync::{Notify, oneshot};

use crate::app::Boundary;
use crate::env::Env;
use crate::model::moment::Moment;

/// Until when the task on the floor stands, and what lets it go on.
type Standing = (Moment, oneshot::Sender<()>);

/// Where tasks wait for answers from outside.
#[derive(Clone)]
pub(super) struct Gate {
    env: Env,
    standing: Arc<Mutex<Option<Standing>>>,
    came: Arc<Notify>,
}

impl Gate {
    pub(super) fn new(env: &Env) -> Self {
        Gate { env: env.clone(), standing: Arc::default(), came: Arc::default() }
    }

    /// Waits on the hand-driven clock. May be waited at only inside a task that [`run`] runs.
    pub(super) async fn wait(&self, time: Duration) {
        let (open, opened) = oneshot::channel();
        *self.standing.lock().unwrap_or_else(PoisonError::into_inner) = Some((self.env.now() + time, open));
        self.came.notify_one();
        // An error means that the loop is gone, and nobody will look at what comes of this.
        let _ = opened.await;
    }

    fn take(&self) -> Option<Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The blade that cuts a task at a boundary.
#[derive(Clone, Default)]
pub(super) struct Blade {
    left: Arc<AtomicUsize>,
    fell: Arc<Notify>,
}

impl Blade {
    /// Cuts whoever crosses the `n`-th boundary from now; 1 is the next.
    pub(super) fn set(&self, n: usize) {
        self.left.store(n, Ordering::SeqCst);
    }
}

#[async_trait]
impl Boundary for Blade {
    async fn cross(&self, _place: &'static str) {
        if self.left.load(Ordering::SeqCst) > 0 && self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.fell.notify_one();
            std::future::pending::<()>().await;
        }
    }
}

/// A task that was begun.
pub(super) struct Task<T> {
    work: BoxFuture<'static, T>,
    open: Option<oneshot::Sender<()>>,
}

impl<T> Task<T> {
    pub(super) fn new(work: impl Future<Output = T> + Send + 'static) -> Self {
        Task { work: Box::pin(work), open: None }
    }
}

/// How far a task came.
pub(super) enum Ran<T> {
    /// To its end.
    Ended(T),
    /// To the gate, where it stands until then.
    Stands(Moment, Task<T>),
    /// To the blade.
    Cut,
}

/// Runs a task as far as it comes.
pub(super) async fn run<T>(mut task: Task<T>, gate: &Gate, blade: &Blade) -> Ran<T> {
    if let Some(open) = task.open.take() {
        let _ = open.send(());
    }
    tokio::select! {
        biased;
        () = blade.fell.notified() => Ran::Cut,
        () = gate.came.notified() => match gate.take() {
            Some((until, open)) => {
                task.open = Some(open);
                Ran::Stands(until, task)
            }
            None => Ran::Cut,
        },
        done = &mut task.work => Ran::Ended(done),
    }
}
