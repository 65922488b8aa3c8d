-- What edges were told after the copy was made that a restored database comes from: told by them while it recovers.

CREATE TABLE recollections (
    hostname       TEXT PRIMARY KEY,
    tenant_id      TEXT NOT NULL,
    term           BIGINT NOT NULL,
    action         TEXT NOT NULL CHECK (action IN ('serve', 'gone')),
    version        BIGINT NOT NULL,
    certificate_id TEXT,
    serial         TEXT,
    not_after      BIGINT,
    edge_id        TEXT NOT NULL,
    told_at        BIGINT NOT NULL,
    -- When the database was brought in line with it.
    settled_at     BIGINT,
    -- What came of it.
    outcome        TEXT
);

CREATE INDEX recollections_open ON recollections (hostname) WHERE settled_at IS NULL;
