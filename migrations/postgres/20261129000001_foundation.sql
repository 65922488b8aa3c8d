-- The final shape of the store: tenants, claims, holdings, orders, certificates, the ledger, the feed and its edges.
-- Ids are text; times are whole microseconds since 1970 UTC; documents are JSON text; flags are 0 or 1.
-- Both databases carry the same tables and columns; only the type names differ.

-- ---- Tenants ------------------------------------------------------------------------------------------------------

CREATE TABLE tenants (
    id          TEXT PRIMARY KEY,
    slug        TEXT NOT NULL UNIQUE,
    name        TEXT NOT NULL,
    region      TEXT NOT NULL,
    stamp       TEXT NOT NULL,
    shard       BIGINT NOT NULL,
    tier        TEXT NOT NULL,
    status      TEXT NOT NULL CHECK (status IN ('active', 'moving', 'suspended', 'deleted')),
    version     BIGINT NOT NULL,
    created_at  BIGINT NOT NULL
);

-- A slug belongs to its tenant for ever; a retired one is never handed out again.
CREATE TABLE slugs (
    slug        TEXT PRIMARY KEY,
    tenant_id   TEXT NOT NULL REFERENCES tenants (id),
    taken_at    BIGINT NOT NULL,
    retired_at  BIGINT
);

CREATE TABLE contacts (
    id          TEXT PRIMARY KEY,
    tenant_id   TEXT REFERENCES tenants (id),
    email       TEXT NOT NULL,
    kinds       TEXT NOT NULL,
    created_at  BIGINT NOT NULL
);

-- ---- Access -------------------------------------------------------------------------------------------------------

CREATE TABLE tokens (
    id          TEXT PRIMARY KEY,
    scope       TEXT NOT NULL CHECK (scope IN ('operator', 'tenant', 'edge_join', 'portal', 'hand_off')),
    tenant_id   TEXT REFERENCES tenants (id),
    domain_id   TEXT,
    label       TEXT NOT NULL,
    digest      BYTEA NOT NULL UNIQUE,
    created_at  BIGINT NOT NULL,
    expires_at  BIGINT,
    used_at     BIGINT,
    revoked_at  BIGINT
);

-- ---- Claims -------------------------------------------------------------------------------------------------------

CREATE TABLE domains (
    id                TEXT PRIMARY KEY,
    tenant_id         TEXT NOT NULL REFERENCES tenants (id),
    hostname          TEXT NOT NULL,
    claim             TEXT NOT NULL CHECK (claim IN
                        ('awaiting_dns', 'queued', 'live', 'releasing', 'released', 'expired', 'withdrawn')),
    claim_since       BIGINT NOT NULL,
    linked_domain_id  TEXT,
    -- What the tenant was told to publish; promised for the life of the claim.
    routing_mode      TEXT NOT NULL CHECK (routing_mode IN ('per_tenant', 'shared')),
    target            TEXT NOT NULL,
    attempt_id        TEXT NOT NULL,
    -- Evidence of the last look as one document, and the start of the present pace of looking.
    evidence          TEXT NOT NULL,
    looked_at         BIGINT,
    pace_from         BIGINT NOT NULL,
    check_asked_at    BIGINT,
    check_asked_by    TEXT,
    -- The generation at which somebody with news set due_at: a step that was running then keeps it.
    nudged            BIGINT NOT NULL,
    -- What a request through the public name last met, as one document.
    public_probe      TEXT,
    -- The tie after proof; lost_for_us counts positively seen time only.
    tie               TEXT NOT NULL CHECK (tie IN ('held', 'weakened', 'lost')),
    lost_for_us       BIGINT NOT NULL,
    counted_until     BIGINT,
    -- The one door.
    due_at            BIGINT NOT NULL,
    lease_owner       TEXT,
    lease_until       BIGINT NOT NULL,
    generation        BIGINT NOT NULL,
    -- Outcomes up to this generation are recorded; a later intent is open.
    settled           BIGINT NOT NULL,
    failures          BIGINT NOT NULL,
    event_seq         BIGINT NOT NULL,
    certificate_id    TEXT,
    active_since      BIGINT,
    released_at       BIGINT,
    created_at        BIGINT NOT NULL
);

CREATE UNIQUE INDEX domains_one_open_claim ON domains (tenant_id, hostname)
    WHERE claim IN ('awaiting_dns', 'queued', 'live', 'expired');
CREATE INDEX domains_by_hostname ON domains (hostname);
CREATE INDEX domains_due ON domains (due_at);
-- The slot of the day in which a live name is looked at: the last four digits of its id.
CREATE INDEX domains_by_slot ON domains (substr(id, 33, 4)) WHERE claim = 'live';
CREATE INDEX domains_by_tenant ON domains (tenant_id, id);

CREATE TABLE attempts (
    id          TEXT PRIMARY KEY,
    domain_id   TEXT NOT NULL REFERENCES domains (id),
    value       TEXT NOT NULL UNIQUE,
    opened_at   BIGINT NOT NULL,
    deadline    BIGINT NOT NULL,
    proven_at   BIGINT,
    closed_at   BIGINT
);

CREATE INDEX attempts_by_domain ON attempts (domain_id, opened_at);

-- One row a hostname, never deleted: who holds it, and since which term.
CREATE TABLE holdings (
    hostname      TEXT PRIMARY KEY,
    domain_id     TEXT REFERENCES domains (id),
    tenant_id     TEXT REFERENCES tenants (id),
    state         TEXT NOT NULL CHECK (state IN ('held', 'quarantined', 'free')),
    term          BIGINT NOT NULL,
    since         BIGINT NOT NULL,
    successor_id  TEXT,
    successor_at  BIGINT,
    looks_off     BIGINT NOT NULL,
    first_off_at  BIGINT
);

-- ---- Issuance -----------------------------------------------------------------------------------------------------

CREATE TABLE issuers (
    id               TEXT PRIMARY KEY,
    name             TEXT NOT NULL UNIQUE,
    directory        TEXT NOT NULL,
    preference       BIGINT NOT NULL,
    limits           TEXT NOT NULL,
    caa_identities   TEXT NOT NULL,
    account_key      BYTEA,
    account_url      TEXT,
    account_problem  TEXT,
    -- Orders this account spent before its row was made: the ledger starts behind them.
    spent_before     BIGINT NOT NULL,
    lease_owner      TEXT,
    lease_until      BIGINT NOT NULL,
    term             BIGINT NOT NULL,
    -- Grants given so far: whose turn it is among the lanes.
    granted          BIGINT NOT NULL,
    -- The account may not be used before this moment.
    not_before       BIGINT NOT NULL,
    created_at       BIGINT NOT NULL
);

-- Theoretical arrival times (GCRA), one row per limit and key.
CREATE TABLE ledger (
    issuer_id  TEXT NOT NULL REFERENCES issuers (id),
    limit_name TEXT NOT NULL,
    key        TEXT NOT NULL,
    tat        BIGINT NOT NULL,
    PRIMARY KEY (issuer_id, limit_name, key)
);

CREATE TABLE orders (
    id             TEXT PRIMARY KEY,
    domain_id      TEXT NOT NULL REFERENCES domains (id),
    purpose        TEXT NOT NULL CHECK (purpose IN ('first', 'renew', 'reissue')),
    lane           TEXT NOT NULL CHECK (lane IN ('renewal', 'single', 'bulk')),
    issuer_id      TEXT NOT NULL REFERENCES issuers (id),
    state          TEXT NOT NULL CHECK (state IN
                     ('waiting', 'granted', 'placed', 'authorizing', 'ready', 'finalizing', 'issued', 'failed', 'lost')),
    state_since    BIGINT NOT NULL,
    not_before     BIGINT NOT NULL,
    replaces       TEXT,
    sealed_key     BYTEA,
    url            TEXT,
    challenge_url  TEXT,
    challenge_id   TEXT,
    announced_at   BIGINT,
    problem        TEXT,
    certificate_id TEXT,
    created_at     BIGINT NOT NULL
);

CREATE UNIQUE INDEX orders_one_open ON orders (domain_id, purpose)
    WHERE state NOT IN ('issued', 'failed', 'lost');
CREATE INDEX orders_waiting ON orders (issuer_id, not_before) WHERE state = 'waiting';
CREATE INDEX orders_by_domain ON orders (domain_id, created_at);

CREATE TABLE grants (
    id          TEXT PRIMARY KEY,
    issuer_id   TEXT NOT NULL REFERENCES issuers (id),
    order_id    TEXT NOT NULL REFERENCES orders (id),
    granted_at  BIGINT NOT NULL,
    expires_at  BIGINT NOT NULL,
    -- open: not used yet; used: the call was made or may have been; returned: surely not.
    state       TEXT NOT NULL CHECK (state IN ('open', 'used', 'returned'))
);

CREATE UNIQUE INDEX grants_one_open ON grants (order_id) WHERE state = 'open';

-- One row a limit while the outcome of a call is not known; it counts as one interval on top of the row in the ledger.
CREATE TABLE spends (
    grant_id    TEXT NOT NULL REFERENCES grants (id),
    issuer_id   TEXT NOT NULL REFERENCES issuers (id),
    limit_name  TEXT NOT NULL,
    key         TEXT NOT NULL,
    interval_us BIGINT NOT NULL,
    opened_at   BIGINT NOT NULL,
    deadline    BIGINT NOT NULL,
    PRIMARY KEY (grant_id, limit_name)
);

CREATE INDEX spends_by_key ON spends (issuer_id, limit_name, key);

-- What is about to be done outside, written before it is done. Open while its generation is above the subject's `settled`.
CREATE TABLE intents (
    subject_kind  TEXT NOT NULL CHECK (subject_kind IN ('domain', 'issuer', 'alias')),
    subject_id    TEXT NOT NULL,
    effect        TEXT NOT NULL,
    object_id     TEXT NOT NULL,
    generation    BIGINT NOT NULL,
    recorded_at   BIGINT NOT NULL,
    PRIMARY KEY (subject_kind, subject_id)
);

CREATE TABLE certificates (
    id            TEXT PRIMARY KEY,
    domain_id     TEXT REFERENCES domains (id),
    tenant_id     TEXT REFERENCES tenants (id),
    source        TEXT NOT NULL CHECK (source IN ('order', 'import')),
    issuer_id     TEXT REFERENCES issuers (id),
    order_id      TEXT REFERENCES orders (id),
    serial        TEXT NOT NULL,
    fingerprint   TEXT NOT NULL,
    chain         TEXT NOT NULL,
    sealed_key    BYTEA,
    not_before    BIGINT NOT NULL,
    not_after     BIGINT NOT NULL,
    ari_id        TEXT,
    stored_at     BIGINT NOT NULL,
    destroyed_at  BIGINT
);

CREATE INDEX certificates_by_domain ON certificates (domain_id);
CREATE INDEX certificates_by_expiry ON certificates (not_after) WHERE destroyed_at IS NULL;

CREATE TABLE certificate_names (
    certificate_id  TEXT NOT NULL REFERENCES certificates (id),
    name            TEXT NOT NULL,
    PRIMARY KEY (certificate_id, name)
);

CREATE INDEX certificate_names_by_name ON certificate_names (name);

-- HTTP-01 tokens that edges answer while an order is authorizing.
CREATE TABLE challenges (
    id                 TEXT PRIMARY KEY,
    order_id           TEXT NOT NULL REFERENCES orders (id),
    hostname           TEXT NOT NULL,
    token              TEXT NOT NULL,
    key_authorization  TEXT NOT NULL,
    published_at       BIGINT NOT NULL,
    removed_at         BIGINT
);

-- A CA may hand out the token of a pending authorization again, once our order for it is over.
CREATE UNIQUE INDEX challenges_one_open_token ON challenges (token) WHERE removed_at IS NULL;

-- ---- History and feed ---------------------------------------------------------------------------------------------

CREATE TABLE events (
    id          TEXT PRIMARY KEY,
    -- The stream's number, given by the relay: a sequence of the database commits out of order.
    position    BIGINT UNIQUE,
    tenant_id   TEXT,
    domain_id   TEXT,
    domain_seq  BIGINT,
    kind        TEXT NOT NULL,
    actor       TEXT NOT NULL,
    cause       TEXT NOT NULL,
    detail      TEXT NOT NULL,
    at          BIGINT NOT NULL
);

CREATE UNIQUE INDEX events_of_domain ON events (domain_id, domain_seq);
CREATE INDEX events_unnumbered ON events (id) WHERE position IS NULL;

CREATE TABLE outbox (
    id       TEXT PRIMARY KEY,
    seq      BIGINT UNIQUE,
    kind     TEXT NOT NULL CHECK (kind IN ('tenant', 'host', 'certificate', 'challenge')),
    subject  TEXT NOT NULL,
    version  BIGINT NOT NULL,
    at       BIGINT NOT NULL
);

CREATE INDEX outbox_unnumbered ON outbox (id) WHERE seq IS NULL;
CREATE INDEX outbox_by_subject ON outbox (kind, subject);

-- What an edge routes by: one row a hostname, custom or canonical. Rendered into the feed as kind `host`.
CREATE TABLE routes (
    hostname        TEXT PRIMARY KEY,
    tenant_id       TEXT NOT NULL REFERENCES tenants (id),
    domain_id       TEXT REFERENCES domains (id),
    term            BIGINT NOT NULL,
    action          TEXT NOT NULL CHECK (action IN ('serve', 'gone')),
    certificate_id  TEXT REFERENCES certificates (id),
    version         BIGINT NOT NULL
);

-- One row: the feed's epoch, its last number, its keys.
CREATE TABLE feed (
    id             BIGINT PRIMARY KEY CHECK (id = 1),
    epoch          BIGINT NOT NULL,
    last_seq       BIGINT NOT NULL,
    last_position  BIGINT NOT NULL,
    signing_key    BYTEA NOT NULL,
    tls_key        BYTEA NOT NULL,
    tls_cert       TEXT NOT NULL
);

CREATE TABLE distribution_keys (
    id          TEXT PRIMARY KEY,
    epoch       BIGINT NOT NULL,
    sealed_key  BYTEA NOT NULL,
    created_at  BIGINT NOT NULL,
    retired_at  BIGINT
);

CREATE TABLE edges (
    id            TEXT PRIMARY KEY,
    name          TEXT NOT NULL UNIQUE,
    public_key    BYTEA NOT NULL,
    credential    BYTEA NOT NULL UNIQUE,
    status        TEXT NOT NULL CHECK (status IN ('active', 'drained', 'revoked')),
    cursor_epoch  BIGINT NOT NULL,
    cursor_seq    BIGINT NOT NULL,
    heartbeat_at  BIGINT NOT NULL,
    lost_at       BIGINT,
    enrolled_at   BIGINT NOT NULL
);

-- Only exceptions are stored: a certificate that an edge acknowledged but does not serve.
CREATE TABLE rollout_exceptions (
    certificate_id  TEXT NOT NULL REFERENCES certificates (id),
    edge_id         TEXT NOT NULL REFERENCES edges (id),
    observed        TEXT NOT NULL,
    at              BIGINT NOT NULL,
    PRIMARY KEY (certificate_id, edge_id)
);

-- ---- Housekeeping -------------------------------------------------------------------------------------------------

CREATE TABLE vault_keys (
    version     BIGINT PRIMARY KEY,
    canary      BYTEA NOT NULL,
    created_at  BIGINT NOT NULL
);

CREATE TABLE leases (
    name   TEXT PRIMARY KEY,
    owner  TEXT NOT NULL,
    until  BIGINT NOT NULL,
    term   BIGINT NOT NULL
);

-- Where each shard of the routine looks stands in its day.
CREATE TABLE routine_cursors (
    shard     BIGINT PRIMARY KEY,
    position  TEXT NOT NULL,
    lap       BIGINT NOT NULL
);

-- ---- Warnings and delivery (filled by later capabilities) -----------------------------------------------------------

CREATE TABLE warnings (
    domain_id       TEXT NOT NULL REFERENCES domains (id),
    certificate_id  TEXT NOT NULL REFERENCES certificates (id),
    threshold       TEXT NOT NULL,
    raised_at       BIGINT NOT NULL,
    resolved_at     BIGINT,
    PRIMARY KEY (domain_id, certificate_id, threshold)
);

CREATE TABLE webhooks (
    id          TEXT PRIMARY KEY,
    tenant_id   TEXT REFERENCES tenants (id),
    url         TEXT NOT NULL,
    secret      BYTEA NOT NULL,
    kinds       TEXT NOT NULL,
    cursor      BIGINT NOT NULL,
    due_at      BIGINT NOT NULL,
    failures    BIGINT NOT NULL,
    created_at  BIGINT NOT NULL
);

-- ---- Regional aliases ---------------------------------------------------------------------------------------------

CREATE TABLE alias_pools (
    id          TEXT PRIMARY KEY,
    name        TEXT NOT NULL UNIQUE,
    target      TEXT NOT NULL,
    allowed     BIGINT NOT NULL
);

CREATE TABLE alias_assignments (
    name        TEXT PRIMARY KEY,
    tenant_id   TEXT NOT NULL REFERENCES tenants (id),
    pool_id     TEXT NOT NULL REFERENCES alias_pools (id),
    revision    BIGINT NOT NULL,
    submitted   TEXT,
    observed    TEXT,
    drift_since BIGINT,
    due_at      BIGINT NOT NULL,
    generation  BIGINT NOT NULL,
    settled     BIGINT NOT NULL
);
