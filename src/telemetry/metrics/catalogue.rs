//! Every metric there is. The name of a counter gets `_total`, a unit its suffix, all of them the prefix `nameplate_`.

/// How a metric behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts observations by size.
    Histogram,
}

/// One metric.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name without prefix, unit and `_total`.
    pub name: &'static str,
    /// How it behaves.
    pub kind: Kind,
    /// `seconds` or `bytes`, where it has a unit.
    pub unit: Option<&'static str>,
    /// Its labels, each with all the values it can have.
    pub labels: &'static str,
    /// What it says.
    pub help: &'static str,
}

const fn counter(name: &'static str, labels: &'static str, help: &'static str) -> Metric {
    Metric { name, kind: Kind::Counter, unit: None, labels, help }
}

const fn gauge(name: &'static str, labels: &'static str, help: &'static str) -> Metric {
    Metric { name, kind: Kind::Gauge, unit: None, labels, help }
}

const fn seconds(name: &'static str, kind: Kind, labels: &'static str, help: &'static str) -> Metric {
    Metric { name, kind, unit: Some("seconds"), labels, help }
}

macro_rules! metrics {
    ($(#[$doc:meta])* $list:ident: $($name:ident = $metric:expr;)*) => {
        $(pub(super) const $name: Metric = $metric;)*
        $(#[$doc])*
        pub const $list: &[Metric] = &[$($name),*];
    };
}

metrics! {
    /// What an edge counts.
    EDGE:
    REQUESTS = counter("edge_requests", "`protocol`: plain, h1, h2; `status`: 1xx to 5xx", "Requests answered, by the class of the answer's status.");
    OWN_ANSWERS = counter("edge_own_answers", "`status`: 308, 400, 404, 408, 413, 417, 421, 431, 502, 503, 504", "Answers that the edge gave by itself, without the origin's.");
    BODY_BYTES = Metric { name: "edge_body", kind: Kind::Counter, unit: Some("bytes"), labels: "`direction`: in, out", help: "Bytes of bodies and tunnels from (in) and to (out) visitors." };
    RUNNING = gauge("edge_requests_running", "", "Requests that are being answered now.");
    TUNNELS = gauge("edge_tunnels", "", "WebSockets and other upgraded connections that are open.");
    CONNECTIONS = gauge("edge_connections", "`listener`: plain, tls", "Connections that are open.");
    CONNECTIONS_REFUSED = counter("edge_connections_refused", "`listener`: plain, tls", "Connections over edge.connections, whose requests were answered 503.");
    HANDSHAKES = counter("edge_handshakes", "`outcome`: done, no_certificate, failed, timed_out, gone", "TLS handshakes. no_certificate: a server name that is not served, or none.");
    UPSTREAM_SECONDS = seconds("edge_upstream", Kind::Histogram, "", "From a request handed to the origin to the head of its answer.");
    UPSTREAM_ERRORS = counter("edge_upstream_errors", "`kind`: connect, timeout, broken", "Requests that the origin did not answer.");
    ACCESS_LOG_DROPPED = counter("edge_access_log_dropped", "", "Lines of the access log that were dropped because the disk was slower than the visitors.");
    COPY_AGE = seconds("edge_feed_copy_age", Kind::Gauge, "", "Since the control plane last said that this edge's book is current; -1 when it never did.");
    POSITION = gauge("edge_feed_position", "", "The number of the feed's last change in the book; -1 without a book. Compare nameplate_feed_position.");
    FOLLOWING = gauge("edge_following", "", "1 while the feed is followed without trouble, else 0.");
    LEFT_BEHIND = gauge("edge_left_behind", "", "1 when the control plane has left this edge behind and does not count it.");
    DRAINING = gauge("edge_draining", "", "1 once it was told to stop.");
    HOSTS = gauge("edge_hosts", "", "Hostnames that are served.");
    CERTIFICATES = gauge("edge_certificates", "", "Certificates in the book.");
    CERTIFICATES_EXPIRED = gauge("edge_certificates_expired", "", "Hostnames that are served with a certificate that has expired.");
    SOONEST_EXPIRY = seconds("edge_certificate_soonest_expiry_timestamp", Kind::Gauge, "", "When the first certificate that is served expires, in Unix time; 0 when none is served.");
    EDGE_BUILD = gauge("edge_build", "`version`", "1; says which release runs.");
}

metrics! {
    /// What a control plane counts: `serve` and `work`.
    CONTROL:
    API_REQUESTS = counter("api_requests", "`method`; `route`: as in the list of routes, or other; `status`: 1xx to 5xx", "Requests to the API and the pages.");
    API_SECONDS = seconds("api_request", Kind::Histogram, "", "From the head of a request to the head of its answer.");
    STEPS = counter("advance_steps", "`outcome`: done, not_due, superseded, failed", "Steps of domains through the one door.");
    STEP_SECONDS = seconds("advance_step", Kind::Histogram, "", "How long a step took that was due, calls to CA and DNS included.");
    GRANTS = counter("dispatcher_grants", "", "Grants given to waiting orders.");
    LOOK_SECONDS = seconds("look", Kind::Histogram, "", "How long a look at a name's DNS took.");
    LOOKS_WAITING = gauge("looks_waiting", "`lane`: check_now, single, routine, bulk", "Looks that wait for their turn.");
    LOOK_WAIT_SECONDS = seconds("look_wait", Kind::Histogram, "`lane`: check_now, single, routine, bulk", "How long a look waited before it began.");
    LOOKS_PUT_OFF = counter("looks_put_off", "`lane`: check_now, single, routine, bulk", "Looks that were put off because a cap of looks.* left no room for them.");
    DNS_PACKETS = counter("dns_packets", "`to`: resolver, server", "Questions sent by UDP and TCP, those sent again included: to our resolvers, and to zones' own servers.");
    REARMED = counter("sweep_rearmed", "", "Domains that were due without an alarm and got a new one.");
    SWEEP_AGE = seconds("sweep_age", Kind::Gauge, "", "Since the sweep last did its work; -1 before the first.");
    DATABASE_UP = gauge("database_up", "", "1 when the gauges below were read, 0 when the database did not answer; then they are the last ones read, and the ages of pulses grow.");
    DOMAINS = gauge("domains", "`claim`: awaiting_dns, queued, live, releasing, released, expired, withdrawn", "Domains, by their claim.");
    ORDERS_WAITING = gauge("orders_waiting", "`lane`: renewal, single, bulk", "Orders that wait for a grant.");
    OVERDUE = seconds("domain_overdue", Kind::Gauge, "", "How long the longest overdue domain has been due without anybody working on it.");
    OUTBOX = gauge("outbox_waiting", "", "Changes that are not in the feed yet.");
    EVENTS = gauge("events_waiting", "", "Events that have no place in the stream yet.");
    FEED_POSITION = gauge("feed_position", "", "The number of the feed's last change.");
    EDGES = gauge("edges", "`state`: counted, silent, lost, drained", "Edges that are not revoked.");
    EDGES_BEHIND = gauge("edges_behind", "", "Counted edges that have not confirmed the feed's last change.");
    EDGES_LAG = gauge("edges_lag", "", "Changes that the counted edge furthest behind has yet to confirm.");
    DAYS_TO_EXPIRY = gauge("certificates_ending", "`within`: ended, 1d, 7d, 14d, 30d, later", "Live names by when their certificate ends; each is counted once.");
    ALERTS_OPEN = gauge("alerts_open", "`kind`: certificate_ending, certificates_ending, renewal_at_risk, renewals_at_risk, workers_stopped, loop_silent, work_overdue, edges_missing, issuer_unwell, challenge_type_missing, clock_differs, webhook_disabled, webhook_unusable, mail_late, mail_given_up, names_left_behind, edge_serves_another, resolvers_silent", "Alerts that are open.");
    DELIVERIES = counter("deliveries", "`channel`: webhook, mail; `outcome`: delivered, failed", "Tries to deliver something, by how they ended.");
    DELIVERIES_PENDING = gauge("deliveries_pending", "`channel`: webhook, mail", "What waits to be delivered, those of switched-off webhooks not counted.");
    DELIVERY_OLDEST = seconds("delivery_oldest_pending", Kind::Gauge, "`channel`: webhook, mail", "How long the oldest of these waits.");
    WEBHOOKS_OFF = gauge("webhooks_switched_off", "", "Webhooks that failed for days, or said that they are gone.");
    WORKERS_PULSE = seconds("workers_pulse_age", Kind::Gauge, "", "Since the workers of any process last went round; -1 before the first time.");
    LOOP_AGE = seconds("loop_pulse_age", Kind::Gauge, "`loop`: accounts, alerts, clocks, dispatcher, domain_connect, import_lap, imports, mail, names_at_rest, off_boarding, old_deliveries, relay, remembered, renewal_windows, replacements, revocations, routine_looks, webhooks", "Since this loop of any process last went round and did its work; -1 where no process runs it.");
    LOOP_LIMIT = seconds("loop_pulse_limit", Kind::Gauge, "`loop`: as above", "The age from which on that loop counts as silent.");
    ALERTS_AGE = seconds("alerts_pass_age", Kind::Gauge, "", "Since this process last looked for alerts; -1 before the first time.");
    CONTROL_BUILD = gauge("control_build", "`version`", "1; says which release runs.");
}

impl Metric {
    /// The name as it is scraped.
    pub fn scraped(&self) -> String {
        let unit = self.unit.map_or(String::new(), |unit| format!("_{unit}"));
        let total = if self.kind == Kind::Counter { "_total" } else { "" };
        format!("nameplate_{}{unit}{total}", self.name)
    }
}
