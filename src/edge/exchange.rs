//! One request and its answer, from the first byte to the last: what moved, and what is told of it in the end.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;

use super::Shared;
use super::access_log::{Line, bounded};
use super::framing::Notes;
use super::listen::Place;
use crate::model::moment::Moment;
use crate::telemetry::metrics::Protocol;

/// One connection of a visitor.
pub(super) struct Visit {
    pub(super) peer: IpAddr,
    pub(super) protocol: Protocol,
    /// The version of TLS, and the server name under which the handshake was made.
    pub(super) tls: Option<(&'static str, Box<str>)>,
    /// The room it takes.
    pub(super) place: Place,
    pub(super) notes: Arc<Notes>,
    running: AtomicUsize,
    quiet_since: Mutex<Moment>,
    exchanges: Mutex<Vec<Weak<Exchange>>>,
}

impl Visit {
    pub(super) fn new(
        peer: IpAddr,
        protocol: Protocol,
        tls: Option<(&'static str, Box<str>)>,
        place: Place,
        now: Moment,
    ) -> Visit {
        Visit {
            peer: peer.to_canonical(),
            protocol,
            tls,
            place,
            notes: Arc::default(),
            running: AtomicUsize::new(0),
            quiet_since: Mutex::new(now),
            exchanges: Mutex::default(),
        }
    }

    /// Since when no request has been running; none while one is.
    pub(super) fn quiet_since(&self) -> Option<Moment> {
        let quiet = *self.quiet_since.lock().unwrap_or_else(PoisonError::into_inner);
        (self.running.load(Ordering::Relaxed) == 0).then_some(quiet)
    }

    /// Whether a visitor has stopped taking an answer that has begun: nothing of it moved since the look before the last.
    pub(super) fn is_stuck(&self) -> bool {
        // Every one of them is looked at: each look counts.
        self.running().iter().filter(|exchange| exchange.stands_still()).count() > 0
    }

    /// Whether something still runs for a host that was taken from its tenant.
    pub(super) fn is_let_go(&self) -> bool {
        self.running().iter().any(|exchange| exchange.is_let_go())
    }

    fn running(&self) -> Vec<Arc<Exchange>> {
        let mut exchanges = self.exchanges.lock().unwrap_or_else(PoisonError::into_inner);
        exchanges.retain(|exchange| exchange.strong_count() > 0);
        exchanges.iter().filter_map(Weak::upgrade).collect()
    }

    fn enter(&self, exchange: &Arc<Exchange>) {
        self.running.fetch_add(1, Ordering::Relaxed);
        let mut exchanges = self.exchanges.lock().unwrap_or_else(PoisonError::into_inner);
        // A kept connection may have asked for thousands since the last look.
        if exchanges.len() >= 64 {
            exchanges.retain(|exchange| exchange.strong_count() > 0);
        }
        exchanges.push(Arc::downgrade(exchange));
    }

    fn leave(&self, now: Moment) {
        *self.quiet_since.lock().unwrap_or_else(PoisonError::into_inner) = now;
        self.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a request was about, as far as it was checked.
#[derive(Debug, Default)]
pub(super) struct About {
    pub(super) host: Option<String>,
    pub(super) tenant: Option<String>,
}

/// Where a request's body stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Uploading {
    /// Nobody asks for more of it: the origin has its turn.
    Origin,
    /// The visitor is to send more.
    Visitor,
    /// It broke off.
    Broke,
    /// It was larger than allowed.
    TooLarge,
}

/// One request and its answer.
pub(super) struct Exchange {
    shared: Arc<Shared>,
    pub(super) visit: Arc<Visit>,
    pub(super) id: String,
    pub(super) began: Moment,
    method: http::Method,
    path: String,
    about: OnceLock<About>,
    /// The room that it takes at the origin.
    room: OnceLock<OwnedSemaphorePermit>,
    status: AtomicU16,
    tunnel: AtomicU8,
    moved: AtomicU64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    upload: AtomicU8,
    /// What had moved at the last look, and how many looks ago that was.
    looked: Mutex<(u64, u8)>,
}

impl Exchange {
    /// A request begins.
    pub(super) fn begin(shared: &Arc<Shared>, visit: &Arc<Visit>, method: &http::Method, uri: &http::Uri) -> Arc<Exchange> {
        let path = uri.path_and_query().map_or("", http::uri::PathAndQuery::as_str);
        let exchange = Arc::new(Exchange {
            shared: Arc::clone(shared),
            visit: Arc::clone(visit),
            id: shared.env.draw_hex(16),
            began: shared.env.now(),
            method: method.clone(),
            path: if shared.log.is_some() { bounded(path).to_owned() } else { String::new() },
            about: OnceLock::new(),
            room: OnceLock::new(),
            status: AtomicU16::new(0),
            tunnel: AtomicU8::new(0),
            moved: AtomicU64::new(0),
            bytes_in: AtomicU64::new(0),
            bytes_out: AtomicU64::new(0),
            upload: AtomicU8::new(0),
            looked: Mutex::default(),
        });
        shared.meters.request_began();
        visit.enter(&exchange);
        exchange
    }

    /// What is known of it by now.
    pub(super) fn about(&self, about: About) {
        // The first word stays.
        let _ = self.about.set(about);
    }

    /// Takes room at the origin until it ends; false when there is none.
    pub(super) fn takes_room(&self) -> bool {
        let room = Arc::clone(&self.shared.requests).try_acquire_owned();
        room.is_ok_and(|room| self.room.set(room).is_ok())
    }

    /// Whether the host it is about is nobody's any more, or another tenant's: what takes long must not outlive that.
    pub(super) fn is_let_go(&self) -> bool {
        let Some(About { host: Some(host), tenant: Some(tenant) }) = self.about.get() else { return false };
        self.shared.replica.host(host).is_none_or(|entry| entry.tenant_id.as_str() != tenant)
    }

    /// The head of the answer is known.
    pub(super) fn answered(&self, status: u16) {
        self.status.store(status, Ordering::Relaxed);
        self.moved.fetch_add(1, Ordering::Relaxed);
    }

    /// It became a tunnel.
    pub(super) fn is_tunnel(&self) {
        self.tunnel.store(1, Ordering::Relaxed);
    }

    pub(super) fn came_in(&self, bytes: usize) {
        self.bytes_in.fetch_add(u64::try_from(bytes).unwrap_or(0), Ordering::Relaxed);
        self.moved.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn went_out(&self, bytes: usize) {
        self.bytes_out.fetch_add(u64::try_from(bytes).unwrap_or(0), Ordering::Relaxed);
        self.moved.fetch_add(1, Ordering::Relaxed);
    }

    /// Grows whenever anything moves.
    pub(super) fn moved(&self) -> u64 {
        self.moved.load(Ordering::Relaxed)
    }

    pub(super) fn upload(&self, stands: Uploading) {
        self.upload.store(stands as u8, Ordering::Relaxed);
    }

    pub(super) fn uploading(&self) -> Uploading {
        let all = [Uploading::Origin, Uploading::Visitor, Uploading::Broke, Uploading::TooLarge];
        all.into_iter().find(|u| *u as u8 == self.upload.load(Ordering::Relaxed)).unwrap_or(Uploading::Origin)
    }

    /// Returns whose fault it is once nothing has moved for as long as that one may take.
    pub(super) async fn stalled(&self, idle: Duration, answer: Duration) -> Uploading {
        let env = &self.shared.env;
        let (mut seen, mut since) = ((self.moved(), self.uploading()), env.now());
        loop {
            // Looked at often enough that whose turn it is counts from about when it became theirs.
            env.sleep(idle.min(answer) / 4).await;
            let now = (self.moved(), self.uploading());
            if now != seen {
                (seen, since) = (now, env.now());
            } else if env.now().since(since) >= if seen.1 == Uploading::Visitor { idle } else { answer } {
                return seen.1;
            }
        }
    }

    /// One look of a connection at its exchanges: whether this one has begun to be answered and not moved for two looks.
    fn stands_still(&self) -> bool {
        if self.status.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let moved = self.moved();
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        *looked = if looked.0 == moved { (moved, looked.1.saturating_add(1)) } else { (moved, 0) };
        looked.1 >= 2
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let (shared, visit) = (&self.shared, &self.visit);
        let now = shared.env.now();
        let known = self.status.load(Ordering::Relaxed);
        let status = (known != 0).then_some(known);
        let (bytes_in, bytes_out) = (self.bytes_in.load(Ordering::Relaxed), self.bytes_out.load(Ordering::Relaxed));
        visit.leave(now);
        shared.meters.request_ended(visit.protocol, status, bytes_in, bytes_out);
        let Some(log) = shared.log.as_ref().filter(|log| log.wants(status)) else { return };
        let about = self.about.get();
        log.write(&Line {
            time: time_of(self.began),
            request_id: &self.id,
            client: visit.peer.to_string(),
            protocol: visit.protocol.as_str(),
            tls: visit.tls.as_ref().map(|(version, _)| *version),
            host: about.and_then(|about| about.host.as_deref()),
            tenant: about.and_then(|about| about.tenant.as_deref()),
            method: bounded(self.method.as_str()),
            path: &self.path,
            status,
            bytes_in,
            bytes_out,
            duration_ms: (now.since(self.began).as_secs_f64() * 1e6).round() / 1e3,
            tunnel: self.tunnel.load(Ordering::Relaxed) != 0,
        });
    }
}

/// RFC 3339 with milliseconds.
fn time_of(moment: Moment) -> String {
    let seconds = moment.rfc3339();
    let millis = moment.micros().rem_euclid(1_000_000) / 1_000;
    seconds.strip_suffix('Z').map_or(seconds.clone(), |bare| format!("{bare}.{millis:03}Z"))
}
