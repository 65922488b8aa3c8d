-- The portal: links that let people in, and the sessions they make. Of links and sessions only the SHA-256 is kept.

CREATE TABLE links (
    id          TEXT PRIMARY KEY,
    -- `portal` signs in once; `hand_off` shows one domain's records until it ends.
    kind        TEXT NOT NULL CHECK (kind IN ('portal', 'hand_off')),
    tenant_id   TEXT NOT NULL REFERENCES tenants (id),
    domain_id   TEXT REFERENCES domains (id),
    return_url  TEXT,
    -- The token that asked for it: a link ends with it.
    token_id    TEXT NOT NULL REFERENCES tokens (id),
    digest      BLOB NOT NULL UNIQUE,
    created_by  TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    used_at     INTEGER,
    revoked_at  INTEGER
) STRICT;

CREATE INDEX links_by_tenant ON links (tenant_id, id);
CREATE INDEX links_by_domain ON links (domain_id, id);
CREATE INDEX links_by_end ON links (expires_at);

CREATE TABLE sessions (
    id          TEXT PRIMARY KEY,
    scope       TEXT NOT NULL CHECK (scope IN ('operator', 'tenant')),
    tenant_id   TEXT REFERENCES tenants (id),
    -- The token shown at sign-in, or the one that asked for the link: a session ends with it.
    token_id    TEXT NOT NULL REFERENCES tokens (id),
    -- For the record; the link itself may be gone.
    link_id     TEXT,
    return_url  TEXT,
    digest      BLOB NOT NULL UNIQUE,
    created_at  INTEGER NOT NULL,
    seen_at     INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    ended_at    INTEGER
) STRICT;

CREATE INDEX sessions_by_end ON sessions (expires_at);

-- A tenant's list is read by name.
CREATE INDEX domains_of_tenant_by_name ON domains (tenant_id, hostname, id);
