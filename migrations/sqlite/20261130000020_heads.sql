-- A round of the dispatcher reads what it can grant: the heads of the lanes, and the rows of the ledger under their keys.

-- Whose order it is, so that a tenant's line is found by index.
ALTER TABLE orders ADD COLUMN tenant_id TEXT NOT NULL DEFAULT '';
UPDATE orders SET tenant_id = (SELECT d.tenant_id FROM domains d WHERE d.id = orders.domain_id);

-- The lines of the lanes. Orders that were set aside for a limit of their own, or are held back, are in none.
CREATE INDEX orders_in_line ON orders (issuer_id, lane, tenant_id, id)
    WHERE state = 'waiting' AND held_by IS NULL AND not_before < 9223372036854775807;
CREATE INDEX orders_set_aside ON orders (issuer_id, not_before) WHERE state = 'waiting' AND held_by IS NOT NULL;

-- The ledger is asked by key, whatever the limit.
CREATE TABLE ledger_by_key (
    issuer_id  TEXT NOT NULL REFERENCES issuers (id),
    limit_name TEXT NOT NULL,
    key        TEXT NOT NULL,
    tat        INTEGER NOT NULL,
    refusals   INTEGER NOT NULL DEFAULT 0,
    closed     TEXT CHECK (closed IN ('used_up_by_others', 'paused_by_ca')),
    said       TEXT,
    link       TEXT,
    closed_at  INTEGER,
    PRIMARY KEY (issuer_id, key, limit_name)
) STRICT;
INSERT INTO ledger_by_key (issuer_id, limit_name, key, tat, refusals, closed, said, link, closed_at)
    SELECT issuer_id, limit_name, key, tat, refusals, closed, said, link, closed_at FROM ledger;
DROP TABLE ledger;
ALTER TABLE ledger_by_key RENAME TO ledger;
CREATE INDEX ledger_by_tat ON ledger (issuer_id, tat);
CREATE INDEX ledger_closed ON ledger (issuer_id, tat) WHERE closed IS NOT NULL;

DROP INDEX spends_by_key;
CREATE INDEX spends_by_key ON spends (issuer_id, key, limit_name);

-- What ran out is found without looking at the rest.
CREATE INDEX grants_open ON grants (issuer_id, expires_at) WHERE state = 'open';
CREATE INDEX spends_unanswered ON spends (issuer_id, deadline) WHERE counts = 'order';
