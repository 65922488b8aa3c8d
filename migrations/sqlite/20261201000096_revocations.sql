-- Certificates that are to be revoked at their CA, and what became of that. Written with what ends their use; done later, beside it.

CREATE TABLE revocations (
    certificate_id TEXT PRIMARY KEY REFERENCES certificates (id),
    issuer_id      TEXT NOT NULL REFERENCES issuers (id),
    domain_id      TEXT NOT NULL REFERENCES domains (id),
    asked_at       INTEGER NOT NULL,
    -- When it is tried next; NULL once it is over. Moved on before each try, so that two workers do not try at once.
    due_at         INTEGER,
    attempts       INTEGER NOT NULL,
    revoked_at     INTEGER,
    -- What was wrong with the last try.
    said           TEXT
) STRICT;

CREATE INDEX revocations_due ON revocations (due_at) WHERE due_at IS NOT NULL;
