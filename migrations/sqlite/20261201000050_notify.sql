-- Alerts, the places that events are sent to, and what is sent. The two tables that stood for them were never filled.

DROP TABLE warnings;
DROP TABLE webhooks;

-- What somebody should know of. One row a domain, certificate and threshold, for ever: nothing is told twice. Of the whole
-- platform one open row a kind and subject, with a count.
CREATE TABLE alerts (
    id              TEXT PRIMARY KEY,
    kind            TEXT NOT NULL,
    subject         TEXT NOT NULL,
    tenant_id       TEXT REFERENCES tenants (id),
    domain_id       TEXT REFERENCES domains (id),
    certificate_id  TEXT REFERENCES certificates (id),
    -- Hundredths of the certificate's lifetime that were left.
    threshold       INTEGER,
    -- When the next tighter threshold is crossed; none after the tightest.
    next_at         INTEGER,
    cause           TEXT NOT NULL,
    said            TEXT NOT NULL,
    many            INTEGER NOT NULL,
    -- The count and the tightest threshold when it was last told.
    told_many       INTEGER NOT NULL,
    told_threshold  INTEGER NOT NULL,
    raised_at       INTEGER NOT NULL,
    -- Since when the cause is not seen any more; what comes back soon was never gone.
    clear_since     INTEGER,
    resolved_at     INTEGER,
    resolution      TEXT,
    -- The events that told of it.
    raised_event    TEXT NOT NULL,
    resolved_event  TEXT
) STRICT;

CREATE UNIQUE INDEX alerts_once ON alerts (domain_id, certificate_id, threshold) WHERE domain_id IS NOT NULL;
CREATE UNIQUE INDEX alerts_one_open ON alerts (kind, subject) WHERE domain_id IS NULL AND resolved_at IS NULL;
CREATE INDEX alerts_open ON alerts (kind, cause) WHERE resolved_at IS NULL;
CREATE INDEX alerts_by_tenant ON alerts (tenant_id, id);
CREATE INDEX alerts_by_raised ON alerts (raised_event);
CREATE INDEX alerts_by_resolved ON alerts (resolved_event) WHERE resolved_event IS NOT NULL;

-- How far the stream of events has been handed out: one row.
CREATE TABLE notify_cursor (
    id        INTEGER PRIMARY KEY CHECK (id = 1),
    position  INTEGER NOT NULL
) STRICT;

INSERT INTO notify_cursor (id, position) SELECT 1, COALESCE((SELECT last_position FROM feed WHERE id = 1), 0);

CREATE TABLE webhook_endpoints (
    id               TEXT PRIMARY KEY,
    -- None: of the platform, told of everything.
    tenant_id        TEXT REFERENCES tenants (id),
    url              TEXT NOT NULL,
    kinds            TEXT NOT NULL,
    secret           BLOB NOT NULL,
    previous_secret  BLOB,
    previous_until   INTEGER,
    -- What happened up to here is not sent to it.
    from_position    INTEGER NOT NULL,
    -- Nothing is sent before; failures in a row and since when.
    not_before       INTEGER NOT NULL,
    failures         INTEGER NOT NULL,
    failing_since    INTEGER,
    disabled_at      INTEGER,
    disabled_why     TEXT CHECK (disabled_why IN ('gone', 'failing', 'asked')),
    created_at       INTEGER NOT NULL
) STRICT;

CREATE INDEX webhook_endpoints_by_tenant ON webhook_endpoints (tenant_id, id);

-- One row an event and place: never two.
CREATE TABLE deliveries (
    endpoint_id   TEXT NOT NULL REFERENCES webhook_endpoints (id),
    event_id      TEXT NOT NULL REFERENCES events (id),
    position      INTEGER NOT NULL,
    -- What is told in order: the domain, else the tenant, else the platform.
    subject       TEXT NOT NULL,
    state         TEXT NOT NULL CHECK (state IN ('pending', 'delivered', 'dropped', 'given_up')),
    attempts      INTEGER NOT NULL,
    due_at        INTEGER NOT NULL,
    leased_until  INTEGER NOT NULL,
    tried_at      INTEGER,
    status        INTEGER,
    said          TEXT,
    created_at    INTEGER NOT NULL,
    done_at       INTEGER,
    PRIMARY KEY (endpoint_id, event_id)
) STRICT;

CREATE INDEX deliveries_due ON deliveries (endpoint_id, due_at) WHERE state = 'pending';
CREATE INDEX deliveries_in_order ON deliveries (endpoint_id, subject, position) WHERE state = 'pending';
CREATE INDEX deliveries_done ON deliveries (done_at) WHERE done_at IS NOT NULL;

-- What is to be written to whom: several of them make one message.
CREATE TABLE mail_items (
    address       TEXT NOT NULL,
    event_id      TEXT NOT NULL REFERENCES events (id),
    -- Whose contact it is; empty for operators.
    whose         TEXT NOT NULL,
    position      INTEGER NOT NULL,
    state         TEXT NOT NULL CHECK (state IN ('pending', 'sent', 'dropped', 'given_up')),
    attempts      INTEGER NOT NULL,
    due_at        INTEGER NOT NULL,
    leased_until  INTEGER NOT NULL,
    said          TEXT,
    created_at    INTEGER NOT NULL,
    done_at       INTEGER,
    PRIMARY KEY (address, whose, event_id)
) STRICT;

CREATE INDEX mail_items_due ON mail_items (due_at) WHERE state = 'pending';
CREATE INDEX mail_items_done ON mail_items (done_at) WHERE done_at IS NOT NULL;

-- When the workers last went round, whichever process they run in.
CREATE TABLE pulses (
    name  TEXT PRIMARY KEY,
    at    INTEGER NOT NULL
) STRICT;
