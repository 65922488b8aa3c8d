//! A worker that is cut off, or held, at the n-th boundary it crosses.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use nameplate::app::Boundary;
use tokio::sync::Notify;

/// Cuts the worker at the n-th boundary it crosses from now on: the step's future is dropped there.
#[derive(Clone, Default)]
pub struct Scissors {
    left: Arc<AtomicUsize>,
    crossed: Arc<Mutex<Vec<&'static str>>>,
    cut: Arc<Notify>,
    resume: Arc<Notify>,
}

impl Scissors {
    /// Cut at the `n`-th boundary from now (1 is the next); 0 never.
    pub fn set(&self, n: usize) {
        self.left.store(n, Ordering::SeqCst);
    }

    /// Lets the worker that stands at the cut go on, if its step was kept.
    pub fn resume(&self) {
        self.resume.notify_one();
    }

    /// Returns when a worker stands at the cut.
    pub async fn reached(&self) {
        self.cut.notified().await;
    }

    /// The boundaries crossed so far.
    pub fn crossed(&self) -> Vec<&'static str> {
        self.crossed.lock().unwrap().clone()
    }
}

#[async_trait]
impl Boundary for Scissors {
    async fn cross(&self, place: &'static str) {
        self.crossed.lock().unwrap().push(place);
        if self.left.load(Ordering::SeqCst) > 0 && self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.cut.notify_one();
            self.resume.notified().await;
        }
    }
}
