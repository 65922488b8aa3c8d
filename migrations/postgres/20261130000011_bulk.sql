-- Bulk imports: files of names, kept row by row, and turned into claims behind the request that brought them.

CREATE TABLE imports (
    id               TEXT PRIMARY KEY,
    -- The tenant whose import it is; none for an operator's.
    tenant_id        TEXT REFERENCES tenants (id),
    principal        TEXT NOT NULL,
    actor            TEXT NOT NULL,
    -- What people call it: a file's name as a rule.
    name             TEXT NOT NULL,
    format           TEXT NOT NULL CHECK (format IN ('csv', 'ndjson')),
    dry_run          BIGINT NOT NULL,
    -- Whether tenants that rows name and that are not there are added.
    create_tenants   BIGINT NOT NULL,
    -- Whose the rows are that name nobody.
    default_tenant   TEXT REFERENCES tenants (id),
    state            TEXT NOT NULL CHECK (state IN ('receiving', 'working', 'paused', 'done', 'cancelled', 'broken')),
    -- Written while rows arrive: what was not for long will not any more.
    touched_at       BIGINT NOT NULL,
    -- SHA-256 of the file, once it is whole.
    digest           TEXT,
    idempotency_key  TEXT,
    -- Rows are numbered from 1; those up to the cursor have their verdict.
    row_count        BIGINT NOT NULL,
    cursor           BIGINT NOT NULL,
    claimed          BIGINT NOT NULL,
    already          BIGINT NOT NULL,
    would_claim      BIGINT NOT NULL,
    duplicate        BIGINT NOT NULL,
    refused          BIGINT NOT NULL,
    -- Of those refused: rows that could not even be read.
    unreadable       BIGINT NOT NULL,
    tenants_added    BIGINT NOT NULL,
    -- What the limits make of it, as one document.
    plan             TEXT,
    lease_owner      TEXT,
    lease_until      BIGINT NOT NULL,
    version          BIGINT NOT NULL,
    created_at       BIGINT NOT NULL,
    received_at      BIGINT,
    finished_at      BIGINT
);

CREATE UNIQUE INDEX imports_by_key ON imports (principal, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX imports_by_tenant ON imports (tenant_id, id);
CREATE INDEX imports_open ON imports (state, lease_until) WHERE state IN ('receiving', 'working', 'broken');

CREATE TABLE import_rows (
    import_id   TEXT NOT NULL REFERENCES imports (id),
    n           BIGINT NOT NULL,
    line        BIGINT NOT NULL,
    -- As they were typed, freed of what cannot be seen.
    tenant      TEXT,
    typed       TEXT NOT NULL,
    -- What was read; none where nothing could be.
    hostname    TEXT,
    registered  TEXT,
    verdict     TEXT NOT NULL CHECK (verdict IN
                  ('pending', 'claimed', 'already_yours', 'would_be_claimed', 'duplicate', 'refused', 'cancelled')),
    code        TEXT,
    detail      TEXT,
    suggestion  TEXT,
    tenant_id   TEXT,
    domain_id   TEXT,
    PRIMARY KEY (import_id, n)
);

CREATE INDEX import_rows_by_name ON import_rows (import_id, hostname, n);
CREATE INDEX import_rows_refused ON import_rows (import_id, n) WHERE verdict = 'refused';

-- The import that made a claim.
ALTER TABLE domains ADD COLUMN import_id TEXT;
CREATE INDEX domains_by_import ON domains (import_id, claim) WHERE import_id IS NOT NULL;
