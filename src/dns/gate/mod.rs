//! The gate: every look passes it before it begins, and every packet before it is sent.
//!
//! A look begins when all of its caps are open: all looks together, its zone's, its tenant's, and those of the servers that
//! the zone was last seen to have; its ten seconds begin then, not before. A packet is sent when its server's cap and the one
//! over all packets are open, and the look's clock stands still while it waits for nothing else. The arithmetic is
//! [`model::traffic`](crate::model::traffic); here are the waiting and the keys.
//!
//! What always holds: no server of a zone is sent more packets in any second, from this process, than the caps say, whoever
//! asks and whatever its zones look like; a quarter of the places is kept for "check now". To fake it: observers without a
//! gate, or a hand-driven `Env`. How to get it wrong: send a packet around it, or keep a place across something else.

mod caps;
mod line;
mod zones;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub use caps::Caps;
use caps::{LookKey, PacketKey, ServerKey};
use line::{Line, Place};
use zones::Zones;

use crate::env::Env;
use crate::model::look::{Ask, Lane, Turn};
use crate::model::moment::Moment;
use crate::model::traffic::Request;
use crate::telemetry::metrics::ControlMeters;

/// How long the packets of a look that may be put off wait in all. With the rest of it, that is within the lease of a step that looks.
const PACKETS_WAIT: Duration = Duration::from_secs(15);

/// So many looks of a lane wait, each with a worker that can do nothing else meanwhile; more are put off at once until about
/// their turn. Three lanes wait in this way: `jobs.concurrency` counts them.
const WAITING_LOOKS: u32 = 30;

/// The gate of one process, cheap to clone.
#[derive(Clone)]
pub struct Gate(Arc<Inner>);

struct Inner {
    caps: Caps,
    looks: Arc<Line<LookKey>>,
    packets: Arc<Line<PacketKey>>,
    zones: Mutex<Zones>,
    meters: Arc<ControlMeters>,
    env: Env,
}

/// A look that may run; it ends when this is dropped.
pub(super) struct Running {
    _place: Place<LookKey>,
    lane: Lane,
    gate: Gate,
    began: Moment,
    may_be_put_off: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        let Inner { meters, env, .. } = &*self.gate.0;
        meters.look(env.now().since(self.began));
    }
}

impl Gate {
    /// A gate with these caps.
    pub fn new(caps: Caps, env: &Env, meters: Arc<ControlMeters>) -> Self {
        Gate(Arc::new(Inner {
            looks: Arc::new(Line::new(env).with_room(WAITING_LOOKS)),
            packets: Arc::new(Line::new(env)),
            zones: Mutex::default(),
            env: env.clone(),
            caps,
            meters,
        }))
    }

    /// Waits for a look's turn; or how long it is put off, when that would take more patience than it has.
    pub(super) async fn enter(&self, ask: &Ask) -> Result<Running, Duration> {
        let inner = &self.0;
        let Turn { lane, tenant, patience } = &ask.turn;
        let servers = inner.zones().servers(&ask.registered_domain);
        let caps = inner.caps.of_look(*lane, tenant.as_ref(), &ask.registered_domain, servers);
        let request = Request { lane: *lane, tenant: tenant.clone(), caps };
        let began = inner.env.now();
        let waits = inner.meters.look_waits(lane.as_str());
        let entered = inner.looks.enter(request, *patience).await;
        drop(waits);
        match entered {
            Ok(place) => {
                let now = inner.env.now();
                inner.meters.look_waited(lane.as_str(), now.since(began));
                let may_be_put_off = patience.is_some();
                Ok(Running { _place: place, lane: *lane, gate: self.clone(), began: now, may_be_put_off })
            }
            Err(about) => {
                inner.meters.look_put_off(lane.as_str());
                Err(about)
            }
        }
    }

    /// Which servers a zone was seen to have, so that its next looks wait for them before they begin.
    pub(super) fn learn(&self, zone: &str, servers: impl Iterator<Item = SocketAddr>) {
        self.0.zones().learn(zone, servers.map(ServerKey::of));
    }

    /// What the looks' and the packets' tables hold: rows that are kept.
    pub fn rows(&self) -> (usize, usize) {
        (self.0.looks.rows(), self.0.packets.rows())
    }
}

impl Inner {
    fn zones(&self) -> std::sync::MutexGuard<'_, Zones> {
        self.zones.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A packet that may be sent, and its exchange; over when dropped.
pub(super) struct Sending(Place<PacketKey>, Arc<ControlMeters>, &'static str);

impl Running {
    /// Waits until a packet may be sent to `to`: a zone's own server, or one of our resolvers. How long the look is put off,
    /// when its packets, which have waited for `waited` so far, would wait too long.
    pub(super) async fn packet(&self, to: SocketAddr, own_resolver: bool, waited: Duration) -> Result<Sending, Duration> {
        let inner = &self.gate.0;
        let (caps, whose) = match own_resolver {
            true => (inner.caps.of_question(), "resolver"),
            false => (inner.caps.of_packet(ServerKey::of(to)), "server"),
        };
        let request = Request { lane: self.lane, tenant: None, caps };
        let patience = self.may_be_put_off.then(|| PACKETS_WAIT.saturating_sub(waited));
        let place = inner.packets.enter(request, patience).await;
        let place = place.inspect_err(|_| inner.meters.look_put_off(self.lane.as_str()))?;
        inner.meters.dns_packet(whose);
        Ok(Sending(place, Arc::clone(&inner.meters), whose))
    }
}

impl Sending {
    /// Whether one more packet of the same exchange may be sent now.
    pub(super) fn again(&self) -> bool {
        let may = self.0.again();
        if may {
            self.1.dns_packet(self.2);
        }
        may
    }
}
