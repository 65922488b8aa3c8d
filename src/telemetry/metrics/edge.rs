//! What an edge counts.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::catalogue as names;
use super::labels::{CLASSES, One, Two, build, class, counters, gauges, times, whole};
use super::register::{register, registry, text};
use crate::model::moment::Moment;

/// How a request came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Over the plain port.
    Plain,
    /// HTTP/1.1 over TLS.
    H1,
    /// HTTP/2 over TLS.
    H2,
}

impl Protocol {
    const ALL: [Protocol; 3] = [Protocol::Plain, Protocol::H1, Protocol::H2];

    /// The label's value.
    pub fn as_str(self) -> &'static str {
        match self {
            Protocol::Plain => "plain",
            Protocol::H1 => "h1",
            Protocol::H2 => "h2",
        }
    }

    /// Which listener it comes through.
    pub fn listener(self) -> Listener {
        if self == Protocol::Plain { Listener::Plain } else { Listener::Tls }
    }
}

/// Which listener a connection came through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listener {
    /// Port 80.
    Plain,
    /// Port 443.
    Tls,
}

const LISTENERS: [&str; 2] = ["plain", "tls"];

impl Listener {
    fn as_str(self) -> &'static str {
        match self {
            Listener::Plain => LISTENERS[0],
            Listener::Tls => LISTENERS[1],
        }
    }
}

/// How a TLS handshake ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshake {
    /// Well.
    Done,
    /// There is no certificate for that name.
    NoCertificate,
    /// The two could not agree.
    Failed,
    /// It took too long.
    TimedOut,
    /// The other side went away.
    Gone,
}

const HANDSHAKES: [&str; 5] = ["done", "no_certificate", "failed", "timed_out", "gone"];
const OWN: [&str; 11] = ["308", "400", "404", "408", "413", "417", "421", "431", "502", "503", "504"];

impl Handshake {
    fn as_str(self) -> &'static str {
        match self {
            Handshake::Done => HANDSHAKES[0],
            Handshake::NoCertificate => HANDSHAKES[1],
            Handshake::Failed => HANDSHAKES[2],
            Handshake::TimedOut => HANDSHAKES[3],
            Handshake::Gone => HANDSHAKES[4],
        }
    }
}

/// What is read off an edge's book when it is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EdgeGauges {
    /// The copy's age; none when the control plane was never heard.
    pub copy_age: Option<Duration>,
    /// The last change in the book.
    pub position: Option<i64>,
    /// No trouble.
    pub following: bool,
    /// The control plane does not count it.
    pub left_behind: bool,
    /// It was told to stop.
    pub draining: bool,
    /// Hostnames.
    pub hosts: usize,
    /// Certificates.
    pub certificates: usize,
    /// Hostnames whose certificate has expired.
    pub expired: usize,
    /// When the first one served expires.
    pub soonest_expiry: Option<Moment>,
}

/// The meters of one edge.
#[derive(Debug)]
pub struct EdgeMeters {
    registry: Registry,
    requests: Family<Two, Counter>,
    own: Family<One, Counter>,
    bytes_in: Counter,
    bytes_out: Counter,
    running: Gauge,
    tunnels: Gauge,
    connections: Family<One, Gauge>,
    refused: Family<One, Counter>,
    handshakes: Family<One, Counter>,
    upstream: Histogram,
    upstream_errors: Family<One, Counter>,
    dropped: Counter,
    copy_age: Gauge<f64, std::sync::atomic::AtomicU64>,
    position: Gauge,
    following: Gauge,
    left_behind: Gauge,
    draining: Gauge,
    hosts: Gauge,
    certificates: Gauge,
    expired: Gauge,
    soonest_expiry: Gauge,
}

impl Default for EdgeMeters {
    fn default() -> Self {
        let bytes = counters("direction", &["in", "out"]);
        let mut meters = EdgeMeters {
            registry: registry(),
            requests: Family::default(),
            own: counters("status", &OWN),
            bytes_in: bytes.get_or_create(&[("direction", "in")]).clone(),
            bytes_out: bytes.get_or_create(&[("direction", "out")]).clone(),
            running: Gauge::default(),
            tunnels: Gauge::default(),
            connections: gauges("listener", &LISTENERS),
            refused: counters("listener", &LISTENERS),
            handshakes: counters("outcome", &HANDSHAKES),
            upstream: times(),
            upstream_errors: counters("kind", &["connect", "timeout", "broken"]),
            dropped: Counter::default(),
            copy_age: Gauge::default(),
            position: Gauge::default(),
            following: Gauge::default(),
            left_behind: Gauge::default(),
            draining: Gauge::default(),
            hosts: Gauge::default(),
            certificates: Gauge::default(),
            expired: Gauge::default(),
            soonest_expiry: Gauge::default(),
        };
        for protocol in Protocol::ALL {
            for class in CLASSES {
                drop(meters.requests.get_or_create(&[("protocol", protocol.as_str()), ("status", class)]));
            }
        }
        let mut r = std::mem::take(&mut meters.registry);
        register(&mut r, &names::REQUESTS, meters.requests.clone());
        register(&mut r, &names::OWN_ANSWERS, meters.own.clone());
        register(&mut r, &names::BODY_BYTES, bytes);
        register(&mut r, &names::RUNNING, meters.running.clone());
        register(&mut r, &names::TUNNELS, meters.tunnels.clone());
        register(&mut r, &names::CONNECTIONS, meters.connections.clone());
        register(&mut r, &names::CONNECTIONS_REFUSED, meters.refused.clone());
        register(&mut r, &names::HANDSHAKES, meters.handshakes.clone());
        register(&mut r, &names::UPSTREAM_SECONDS, meters.upstream.clone());
        register(&mut r, &names::UPSTREAM_ERRORS, meters.upstream_errors.clone());
        register(&mut r, &names::ACCESS_LOG_DROPPED, meters.dropped.clone());
        register(&mut r, &names::COPY_AGE, meters.copy_age.clone());
        register(&mut r, &names::POSITION, meters.position.clone());
        register(&mut r, &names::FOLLOWING, meters.following.clone());
        register(&mut r, &names::LEFT_BEHIND, meters.left_behind.clone());
        register(&mut r, &names::DRAINING, meters.draining.clone());
        register(&mut r, &names::HOSTS, meters.hosts.clone());
        register(&mut r, &names::CERTIFICATES, meters.certificates.clone());
        register(&mut r, &names::CERTIFICATES_EXPIRED, meters.expired.clone());
        register(&mut r, &names::SOONEST_EXPIRY, meters.soonest_expiry.clone());
        register(&mut r, &names::EDGE_BUILD, build());
        meters.registry = r;
        meters
    }
}

impl EdgeMeters {
    /// A request begins.
    pub fn request_began(&self) {
        self.running.inc();
    }

    /// A request ended; with none for a status the visitor went away before one was known.
    pub fn request_ended(&self, protocol: Protocol, status: Option<u16>, bytes_in: u64, bytes_out: u64) {
        self.running.dec();
        if let Some(status) = status {
            self.requests.get_or_create(&[("protocol", protocol.as_str()), ("status", class(status))]).inc();
        }
        self.bytes_in.inc_by(bytes_in);
        self.bytes_out.inc_by(bytes_out);
    }

    /// The edge answered by itself.
    pub fn own_answer(&self, status: u16) {
        let text = OWN.iter().find(|own| own.parse() == Ok(status));
        if let Some(status) = text {
            self.own.get_or_create(&[("status", *status)]).inc();
        }
    }

    /// A tunnel was opened, or (false) closed.
    pub fn tunnel(&self, opened: bool) {
        if opened {
            self.tunnels.inc()
        } else {
            self.tunnels.dec()
        };
    }

    /// A connection was opened, or (false) closed.
    pub fn connection(&self, listener: Listener, opened: bool) {
        let open = self.connections.get_or_create(&[("listener", listener.as_str())]);
        if opened {
            open.inc()
        } else {
            open.dec()
        };
    }

    /// A connection over the limit.
    pub fn connection_refused(&self, listener: Listener) {
        self.refused.get_or_create(&[("listener", listener.as_str())]).inc();
    }

    /// A handshake ended.
    pub fn handshake(&self, outcome: Handshake) {
        self.handshakes.get_or_create(&[("outcome", outcome.as_str())]).inc();
    }

    /// The origin's head came after so long.
    pub fn upstream(&self, took: Duration) {
        self.upstream.observe(took.as_secs_f64());
    }

    /// The origin could not be reached (`connect`), did not answer (`timeout`) or answered nonsense (`broken`).
    pub fn upstream_error(&self, kind: &'static str) {
        self.upstream_errors.get_or_create(&[("kind", kind)]).inc();
    }

    /// A line of the access log was dropped.
    pub fn access_line_dropped(&self) {
        self.dropped.inc();
    }

    /// Takes over what the book says now.
    pub fn set(&self, now: &EdgeGauges) {
        self.copy_age.set(now.copy_age.map_or(-1.0, |age| age.as_secs_f64()));
        self.position.set(now.position.unwrap_or(-1));
        self.following.set(now.following.into());
        self.left_behind.set(now.left_behind.into());
        self.draining.set(now.draining.into());
        self.hosts.set(whole(now.hosts));
        self.certificates.set(whole(now.certificates));
        self.expired.set(whole(now.expired));
        self.soonest_expiry.set(now.soonest_expiry.map_or(0, Moment::secs));
    }

    /// What is scraped.
    pub fn text(&self) -> String {
        text(&self.registry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_is_counted_and_what_did_not_is_zero() {
        let meters = EdgeMeters::default();
        meters.request_began();
        meters.request_ended(Protocol::H2, Some(204), 10, 0);
        meters.own_answer(421);
        meters.own_answer(999);
        meters.handshake(Handshake::NoCertificate);
        meters.set(&EdgeGauges { position: Some(7), hosts: 3, ..EdgeGauges::default() });
        let text = meters.text();
        for line in [
            "nameplate_edge_requests_total{protocol=\"h2\",status=\"2xx\"} 1",
            "nameplate_edge_requests_total{protocol=\"h1\",status=\"5xx\"} 0",
            "nameplate_edge_own_answers_total{status=\"421\"} 1",
            "nameplate_edge_body_bytes_total{direction=\"in\"} 10",
            "nameplate_edge_requests_running 0",
            "nameplate_edge_handshakes_total{outcome=\"no_certificate\"} 1",
            "nameplate_edge_feed_copy_age_seconds -1.0",
            "nameplate_edge_feed_position 7",
            "nameplate_edge_hosts 3",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} in {text}");
        }
    }
}
