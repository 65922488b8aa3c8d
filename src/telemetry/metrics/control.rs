//! What a control plane counts, and the gauges that are read from its database.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::catalogue as names;
use super::labels::{One, Three, Two, build, class, counters, gauges, times, times_by};
use super::register::{register, registry, text};
use crate::model::alert::kinds::ALERTS;
use crate::model::alert::loops::{LOOPS, SWEEP};
use crate::model::moment::Moment;

/// How a step through the one door ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepOutcome {
    /// It was recorded.
    Done,
    /// Nothing was due, or somebody else is at it.
    NotDue,
    /// Somebody else moved the domain meanwhile.
    Superseded,
    /// It failed on our side and will be taken again.
    Failed,
}

const OUTCOMES: [&str; 4] = ["done", "not_due", "superseded", "failed"];
const CLAIMS: [&str; 7] = ["awaiting_dns", "queued", "live", "releasing", "released", "expired", "withdrawn"];
const LANES: [&str; 3] = ["renewal", "single", "bulk"];
const LOOK_LANES: [&str; 4] = ["check_now", "single", "routine", "bulk"];
const PACKETS_TO: [&str; 2] = ["resolver", "server"];
const EDGE_STATES: [&str; 4] = ["counted", "silent", "lost", "drained"];
const WITHIN: [&str; 6] = ["ended", "1d", "7d", "14d", "30d", "later"];
const CHANNELS: [&str; 2] = ["webhook", "mail"];
const DELIVERY_OUTCOMES: [&str; 2] = ["delivered", "failed"];
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// What the database holds, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Domains by the word of their claim.
    pub domains: Vec<(String, i64)>,
    /// Waiting orders by the word of their lane.
    pub orders_waiting: Vec<(String, i64)>,
    /// Since when the longest overdue domain is due.
    pub overdue_since: Option<Moment>,
    /// Changes without a number.
    pub outbox: i64,
    /// Events without a number.
    pub events: i64,
    /// The feed's last number.
    pub feed_position: i64,
    /// Edges heard of that are neither lost nor drained.
    pub edges_counted: i64,
    /// Edges that have not been heard of for a while.
    pub edges_silent: i64,
    /// Edges left behind.
    pub edges_lost: i64,
    /// Edges taken out by an operator.
    pub edges_drained: i64,
    /// Counted edges that have not confirmed the last number.
    pub edges_behind: i64,
    /// The numbers that the furthest of those has yet to confirm.
    pub edges_lag: i64,
    /// Live names by when their certificate ends.
    pub ending: Vec<(String, i64)>,
    /// Open alerts by kind.
    pub alerts: Vec<(String, i64)>,
    /// What waits to be delivered, by channel, and since when the oldest does.
    pub pending: Vec<(String, i64)>,
    /// See `pending`.
    pub oldest: Vec<(String, Option<Moment>)>,
    /// Webhooks that are switched off for their failures.
    pub webhooks_off: i64,
    /// When the sweep and each loop last went round.
    pub pulses: Vec<(String, Moment)>,
}

/// The meters of one control plane.
#[derive(Debug)]
pub struct ControlMeters {
    registry: Registry,
    api: Family<Three, Counter>,
    api_seconds: Histogram,
    steps: Family<One, Counter>,
    step_seconds: Histogram,
    grants: Counter,
    look_seconds: Histogram,
    looks_waiting: Family<One, Gauge>,
    look_waits: Family<One, Histogram>,
    looks_put_off: Family<One, Counter>,
    dns_packets: Family<One, Counter>,
    rearmed: Counter,
    swept_at: AtomicI64,
    sweep_age: Gauge<f64, AtomicU64>,
    database_up: Gauge,
    domains: Family<One, Gauge>,
    orders_waiting: Family<One, Gauge>,
    overdue: Gauge<f64, AtomicU64>,
    outbox: Gauge,
    events: Gauge,
    feed_position: Gauge,
    edges: Family<One, Gauge>,
    edges_behind: Gauge,
    edges_lag: Gauge,
    ending: Family<One, Gauge>,
    alerts: Family<One, Gauge>,
    deliveries: Family<Two, Counter>,
    pending: Family<One, Gauge>,
    oldest: Family<One, Gauge<f64, AtomicU64>>,
    webhooks_off: Gauge,
    pulse: Gauge<f64, AtomicU64>,
    loop_age: Family<One, Gauge<f64, AtomicU64>>,
    loop_limit: Family<One, Gauge<f64, AtomicU64>>,
    /// As last read: the ages grow while the database says nothing.
    pulses: Mutex<Vec<(String, Moment)>>,
    watched_at: AtomicI64,
    watch_age: Gauge<f64, AtomicU64>,
}

impl Default for ControlMeters {
    fn default() -> Self {
        let mut meters = ControlMeters {
            registry: registry(),
            api: Family::default(),
            api_seconds: times(),
            steps: counters("outcome", &OUTCOMES),
            step_seconds: times(),
            grants: Counter::default(),
            look_seconds: times(),
            looks_waiting: gauges("lane", &LOOK_LANES),
            look_waits: times_by("lane", &LOOK_LANES),
            looks_put_off: counters("lane", &LOOK_LANES),
            dns_packets: counters("to", &PACKETS_TO),
            rearmed: Counter::default(),
            swept_at: AtomicI64::new(i64::MIN),
            sweep_age: Gauge::default(),
            database_up: Gauge::default(),
            domains: gauges("claim", &CLAIMS),
            orders_waiting: gauges("lane", &LANES),
            overdue: Gauge::default(),
            outbox: Gauge::default(),
            events: Gauge::default(),
            feed_position: Gauge::default(),
            edges: gauges("state", &EDGE_STATES),
            edges_behind: Gauge::default(),
            edges_lag: Gauge::default(),
            ending: gauges("within", &WITHIN),
            alerts: gauges("kind", ALERTS),
            deliveries: Family::default(),
            pending: gauges("channel", &CHANNELS),
            oldest: gauges("channel", &CHANNELS),
            webhooks_off: Gauge::default(),
            pulse: Gauge::default(),
            loop_age: Family::default(),
            loop_limit: Family::default(),
            pulses: Mutex::default(),
            watched_at: AtomicI64::new(i64::MIN),
            watch_age: Gauge::default(),
        };
        for channel in CHANNELS {
            for outcome in DELIVERY_OUTCOMES {
                drop(meters.deliveries.get_or_create(&[("channel", channel), ("outcome", outcome)]));
            }
        }
        for one in LOOPS {
            meters.loop_age.get_or_create(&[("loop", one.name)]).set(-1.0);
            meters.loop_limit.get_or_create(&[("loop", one.name)]).set(one.silence().as_secs_f64());
        }
        let mut r = std::mem::take(&mut meters.registry);
        register(&mut r, &names::API_REQUESTS, meters.api.clone());
        register(&mut r, &names::API_SECONDS, meters.api_seconds.clone());
        register(&mut r, &names::STEPS, meters.steps.clone());
        register(&mut r, &names::STEP_SECONDS, meters.step_seconds.clone());
        register(&mut r, &names::GRANTS, meters.grants.clone());
        register(&mut r, &names::LOOK_SECONDS, meters.look_seconds.clone());
        register(&mut r, &names::LOOKS_WAITING, meters.looks_waiting.clone());
        register(&mut r, &names::LOOK_WAIT_SECONDS, meters.look_waits.clone());
        register(&mut r, &names::LOOKS_PUT_OFF, meters.looks_put_off.clone());
        register(&mut r, &names::DNS_PACKETS, meters.dns_packets.clone());
        register(&mut r, &names::REARMED, meters.rearmed.clone());
        register(&mut r, &names::SWEEP_AGE, meters.sweep_age.clone());
        register(&mut r, &names::DATABASE_UP, meters.database_up.clone());
        register(&mut r, &names::DOMAINS, meters.domains.clone());
        register(&mut r, &names::ORDERS_WAITING, meters.orders_waiting.clone());
        register(&mut r, &names::OVERDUE, meters.overdue.clone());
        register(&mut r, &names::OUTBOX, meters.outbox.clone());
        register(&mut r, &names::EVENTS, meters.events.clone());
        register(&mut r, &names::FEED_POSITION, meters.feed_position.clone());
        register(&mut r, &names::EDGES, meters.edges.clone());
        register(&mut r, &names::EDGES_BEHIND, meters.edges_behind.clone());
        register(&mut r, &names::EDGES_LAG, meters.edges_lag.clone());
        register(&mut r, &names::DAYS_TO_EXPIRY, meters.ending.clone());
        register(&mut r, &names::ALERTS_OPEN, meters.alerts.clone());
        register(&mut r, &names::DELIVERIES, meters.deliveries.clone());
        register(&mut r, &names::DELIVERIES_PENDING, meters.pending.clone());
        register(&mut r, &names::DELIVERY_OLDEST, meters.oldest.clone());
        register(&mut r, &names::WEBHOOKS_OFF, meters.webhooks_off.clone());
        register(&mut r, &names::WORKERS_PULSE, meters.pulse.clone());
        register(&mut r, &names::LOOP_AGE, meters.loop_age.clone());
        register(&mut r, &names::LOOP_LIMIT, meters.loop_limit.clone());
        register(&mut r, &names::ALERTS_AGE, meters.watch_age.clone());
        register(&mut r, &names::CONTROL_BUILD, build());
        meters.registry = r;
        meters
    }
}

impl ControlMeters {
    /// A request to API or pages was answered. `route` comes from the list of routes.
    pub fn api_request(&self, method: &str, route: &'static str, status: u16, took: Duration) {
        let method = METHODS.iter().find(|known| **known == method).copied().unwrap_or("other");
        self.api.get_or_create(&[("method", method), ("route", route), ("status", class(status))]).inc();
        self.api_seconds.observe(took.as_secs_f64());
    }

    /// A step ended.
    pub fn step(&self, outcome: StepOutcome, took: Duration) {
        let word = match outcome {
            StepOutcome::Done => OUTCOMES[0],
            StepOutcome::NotDue => OUTCOMES[1],
            StepOutcome::Superseded => OUTCOMES[2],
            StepOutcome::Failed => OUTCOMES[3],
        };
        self.steps.get_or_create(&[("outcome", word)]).inc();
        if outcome != StepOutcome::NotDue {
            self.step_seconds.observe(took.as_secs_f64());
        }
    }

    /// Grants were given.
    pub fn grants(&self, count: usize) {
        self.grants.inc_by(u64::try_from(count).unwrap_or(u64::MAX));
    }

    /// A look ended.
    pub fn look(&self, took: Duration) {
        self.look_seconds.observe(took.as_secs_f64());
    }

    /// A look waits in this lane until what is returned is dropped.
    pub fn look_waits(&self, lane: &'static str) -> Waits {
        let gauge = self.looks_waiting.get_or_create(&[("lane", lane)]).clone();
        gauge.inc();
        Waits(gauge)
    }

    /// A look begins after so long a wait.
    pub fn look_waited(&self, lane: &'static str, wait: Duration) {
        self.look_waits.get_or_create(&[("lane", lane)]).observe(wait.as_secs_f64());
    }

    /// A look was put off.
    pub fn look_put_off(&self, lane: &'static str) {
        self.looks_put_off.get_or_create(&[("lane", lane)]).inc();
    }

    /// A question is sent to a `resolver` or a `server`.
    pub fn dns_packet(&self, to: &'static str) {
        self.dns_packets.get_or_create(&[("to", to)]).inc();
    }

    /// A sweep did its work.
    pub fn swept(&self, now: Moment, rearmed: usize) {
        self.swept_at.store(now.micros(), Ordering::Relaxed);
        self.rearmed.inc_by(u64::try_from(rearmed).unwrap_or(u64::MAX));
    }

    /// When a sweep last did its work.
    pub fn swept_at(&self) -> Option<Moment> {
        let at = self.swept_at.load(Ordering::Relaxed);
        (at != i64::MIN).then(|| Moment::from_micros(at))
    }

    /// A try to deliver something by `webhook` or `mail` ended: `delivered` or `failed`.
    pub fn delivered(&self, channel: &'static str, outcome: &'static str) {
        self.deliveries.get_or_create(&[("channel", channel), ("outcome", outcome)]).inc();
    }

    /// Alerts were looked for.
    pub fn watched(&self, now: Moment) {
        self.watched_at.store(now.micros(), Ordering::Relaxed);
    }

    /// Takes over what the database said, or that it said nothing.
    pub fn set(&self, census: Option<&Census>, now: Moment) {
        self.sweep_age.set(self.swept_at().map_or(-1.0, |at| now.since(at).as_secs_f64()));
        let watched = self.watched_at.load(Ordering::Relaxed);
        self.watch_age.set(if watched == i64::MIN { -1.0 } else { now.since(Moment::from_micros(watched)).as_secs_f64() });
        self.set_pulses(census, now);
        self.database_up.set(census.is_some().into());
        let Some(census) = census else { return };
        set_all(&self.domains, "claim", &CLAIMS, &census.domains);
        set_all(&self.orders_waiting, "lane", &LANES, &census.orders_waiting);
        self.overdue.set(census.overdue_since.map_or(0.0, |at| now.since(at).as_secs_f64()));
        self.outbox.set(census.outbox);
        self.events.set(census.events);
        self.feed_position.set(census.feed_position);
        let edges = [census.edges_counted, census.edges_silent, census.edges_lost, census.edges_drained];
        for (state, count) in EDGE_STATES.into_iter().zip(edges) {
            self.edges.get_or_create(&[("state", state)]).set(count);
        }
        self.edges_behind.set(census.edges_behind);
        self.edges_lag.set(census.edges_lag);
        set_all(&self.ending, "within", &WITHIN, &census.ending);
        set_all(&self.alerts, "kind", ALERTS, &census.alerts);
        set_all(&self.pending, "channel", &CHANNELS, &census.pending);
        for channel in CHANNELS {
            let since = census.oldest.iter().find(|(seen, _)| seen == channel).and_then(|(_, since)| *since);
            let age = since.map_or(0.0, |since| now.since(since).as_secs_f64());
            self.oldest.get_or_create(&[("channel", channel)]).set(age);
        }
        self.webhooks_off.set(census.webhooks_off);
    }

    fn set_pulses(&self, census: Option<&Census>, now: Moment) {
        let mut known = self.pulses.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(census) = census {
            known.clone_from(&census.pulses);
        }
        let age = |name: &str| {
            let at = known.iter().find(|(of, _)| of == name).map(|(_, at)| *at);
            at.map_or(-1.0, |at| now.since(at).as_secs_f64())
        };
        self.pulse.set(age(SWEEP));
        for one in LOOPS {
            self.loop_age.get_or_create(&[("loop", one.name)]).set(age(one.name));
        }
    }

    /// What is scraped.
    pub fn text(&self) -> String {
        text(&self.registry)
    }
}

/// Something that waits, counted until it is dropped.
#[must_use]
#[derive(Debug)]
pub struct Waits(Gauge);

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Sets every known word, to 0 where nothing was counted.
fn set_all(family: &Family<One, Gauge>, label: &'static str, words: &[&'static str], counted: &[(String, i64)]) {
    for word in words {
        let count = counted.iter().find(|(seen, _)| seen == word).map_or(0, |(_, count)| *count);
        family.get_or_create(&[(label, *word)]).set(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_stay_within_their_lists() {
        let meters = ControlMeters::default();
        meters.api_request("BREW", "other", 404, Duration::from_millis(1));
        meters.step(StepOutcome::Failed, Duration::from_secs(1));
        let census = Census { domains: vec![("live".into(), 4), ("unheard".into(), 9)], edges_lag: 2, ..Census::default() };
        meters.set(Some(&census), Moment::from_secs(10));
        meters.set(None, Moment::from_secs(11));
        let text = meters.text();
        for line in [
            "nameplate_api_requests_total{method=\"other\",route=\"other\",status=\"4xx\"} 1",
            "nameplate_advance_steps_total{outcome=\"failed\"} 1",
            "nameplate_domains{claim=\"live\"} 4",
            "nameplate_domains{claim=\"queued\"} 0",
            "nameplate_edges_lag 2",
            "nameplate_database_up 0",
            "nameplate_sweep_age_seconds -1.0",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} in {text}");
        }
        assert!(!text.contains("unheard"));
    }

    /// What is known of a pulse grows old, whether the database says something or not.
    #[test]
    fn a_pulse_grows_older_while_the_database_says_nothing() {
        let meters = ControlMeters::default();
        let scraped = |census, secs, line: &str| {
            meters.set(census, Moment::from_secs(secs));
            let text = meters.text();
            assert!(text.lines().any(|l| l == line), "{line} in {text}");
        };
        let listed = names::LOOP_AGE.labels.trim_start_matches("`loop`: ");
        assert_eq!(listed.split(", ").collect::<Vec<_>>(), LOOPS.iter().map(|l| l.name).collect::<Vec<_>>());
        scraped(None, 5, "nameplate_loop_pulse_age_seconds{loop=\"relay\"} -1.0");
        scraped(None, 5, "nameplate_loop_pulse_limit_seconds{loop=\"clocks\"} 6000.0");
        let pulses = vec![("relay".to_owned(), Moment::from_secs(7)), ("sweep".to_owned(), Moment::from_secs(8))];
        let census = Census { pulses, ..Census::default() };
        scraped(Some(&census), 10, "nameplate_loop_pulse_age_seconds{loop=\"relay\"} 3.0");
        scraped(None, 40, "nameplate_loop_pulse_age_seconds{loop=\"relay\"} 33.0");
        scraped(None, 40, "nameplate_workers_pulse_age_seconds 32.0");
        scraped(Some(&Census::default()), 41, "nameplate_loop_pulse_age_seconds{loop=\"relay\"} -1.0");
    }
}
