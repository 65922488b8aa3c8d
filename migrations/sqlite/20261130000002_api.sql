-- What the API needs beside the foundation: answers kept for repeated requests, and indexes behind its lists.

-- The answer to a request that carried an Idempotency-Key, written in the transaction that did what was asked. A row of which
-- the answer is null is never seen from outside its transaction.
CREATE TABLE kept_answers (
    principal   TEXT NOT NULL,
    key         TEXT NOT NULL,
    request     BLOB NOT NULL,
    answer      BLOB,
    kept_at     INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    PRIMARY KEY (principal, key)
) STRICT;

CREATE INDEX kept_answers_by_end ON kept_answers (expires_at);

CREATE UNIQUE INDEX contacts_one_an_address ON contacts (tenant_id, email);
CREATE INDEX tokens_by_tenant ON tokens (tenant_id, id);
-- In order within a state: this one does all that the one before it did.
DROP INDEX domains_by_claim;
CREATE INDEX domains_by_claim ON domains (claim, id);
CREATE INDEX events_by_tenant ON events (tenant_id, position);
CREATE INDEX certificates_by_tenant ON certificates (tenant_id, not_after);
CREATE INDEX orders_open ON orders (id) WHERE state NOT IN ('issued', 'failed', 'lost');
