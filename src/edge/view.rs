//! How an edge is doing, for those who watch it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::env::Env;
use crate::feed::replica::{Replica, ReplicaStatus};
use crate::model::feed_apply::CertificateCount;
use crate::model::moment::Moment;
use crate::telemetry::metrics::{EdgeGauges, EdgeMeters};

/// Counting a large book takes milliseconds: it is not done more often than this.
const COUNTED_FOR: Duration = Duration::from_secs(5);

/// A view of a running edge, cheap to clone.
#[derive(Clone)]
pub struct EdgeView {
    replica: Arc<Replica>,
    meters: Arc<EdgeMeters>,
    env: Env,
    draining: Arc<AtomicBool>,
    counted: Arc<Mutex<Option<(Moment, CertificateCount)>>>,
}

impl EdgeView {
    pub(super) fn new(replica: Arc<Replica>, meters: Arc<EdgeMeters>, env: Env) -> EdgeView {
        EdgeView { replica, meters, env, draining: Arc::default(), counted: Arc::default() }
    }

    /// How it follows the feed.
    pub fn status(&self) -> ReplicaStatus {
        self.replica.status()
    }

    pub(super) fn meters(&self) -> Arc<EdgeMeters> {
        Arc::clone(&self.meters)
    }

    pub(super) fn drains(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Why visitors should not be sent here; nothing when they should. A copy that is merely old is no reason: when the
    /// control plane is away every edge's is, and all of them serve on.
    pub fn unready(&self) -> Vec<&'static str> {
        let status = self.status();
        let reasons = [
            (status.position.is_none(), "it has no book yet, so it would have to refuse everybody"),
            (status.left_behind, "the control plane has left it behind: it does not have what other edges have"),
            (self.draining.load(Ordering::Relaxed), "it was told to stop and finishes what runs"),
        ];
        reasons.into_iter().filter(|(holds, _)| *holds).map(|(_, reason)| reason).collect()
    }

    /// What is scraped.
    pub fn metrics(&self) -> String {
        let (status, now) = (self.status(), self.env.now());
        let count = self.certificates(now);
        self.meters.set(&EdgeGauges {
            copy_age: status.heard_at.map(|at| now.since(at)),
            position: status.position.map(|position| position.seq),
            following: status.trouble.is_none() && status.heard_at.is_some(),
            left_behind: status.left_behind,
            draining: self.draining.load(Ordering::Relaxed),
            hosts: status.serving,
            certificates: count.held,
            expired: count.expired,
            soonest_expiry: count.soonest_expiry,
        });
        self.meters.text()
    }

    fn certificates(&self, now: Moment) -> CertificateCount {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        match *counted {
            Some((at, count)) if now.since(at) < COUNTED_FOR => count,
            _ => {
                let count = self.replica.certificates();
                *counted = Some((now, count));
                count
            }
        }
    }
}
