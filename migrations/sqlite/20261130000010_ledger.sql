-- What a CA lets us spend: every limit, by account, registered domain and name.

-- When a spend is counted: with the order itself, with a validation that fails, or with the certificate.
ALTER TABLE spends ADD COLUMN counts TEXT NOT NULL DEFAULT 'order' CHECK (counts IN ('order', 'failure', 'certificate'));

-- A row that the CA closed although we had not used it up: why, in whose words, since when, and how often in a row.
ALTER TABLE ledger ADD COLUMN refusals INTEGER NOT NULL DEFAULT 0;
ALTER TABLE ledger ADD COLUMN closed TEXT CHECK (closed IN ('used_up_by_others', 'paused_by_ca'));
ALTER TABLE ledger ADD COLUMN said TEXT;
ALTER TABLE ledger ADD COLUMN link TEXT;
ALTER TABLE ledger ADD COLUMN closed_at INTEGER;

CREATE INDEX ledger_by_tat ON ledger (issuer_id, tat);

-- The limit of its own that holds a waiting order back until `not_before`.
ALTER TABLE orders ADD COLUMN held_by TEXT;

-- The turn in which a tenant was last served in a lane.
CREATE TABLE turns (
    issuer_id  TEXT NOT NULL REFERENCES issuers (id),
    lane       TEXT NOT NULL,
    tenant_id  TEXT NOT NULL REFERENCES tenants (id),
    served     INTEGER NOT NULL,
    PRIMARY KEY (issuer_id, lane, tenant_id)
) STRICT;

-- An issuer's row says all that is needed to speak to its CA, so that a new one needs no restart.
ALTER TABLE issuers ADD COLUMN source TEXT NOT NULL DEFAULT 'configuration' CHECK (source IN ('configuration', 'command'));
ALTER TABLE issuers ADD COLUMN contacts TEXT NOT NULL DEFAULT '[]';
ALTER TABLE issuers ADD COLUMN roots TEXT;
ALTER TABLE issuers ADD COLUMN profile TEXT;
ALTER TABLE issuers ADD COLUMN eab_key_id TEXT;
ALTER TABLE issuers ADD COLUMN eab_hmac BLOB;
-- The account's next key, stored before the CA is told of it.
ALTER TABLE issuers ADD COLUMN next_account_key BLOB;

-- What is remembered of a CA's answers: failures in a row, until when nothing is asked; why our account cannot be used, how often
-- in a row that was found, and when the CA is asked about it again.
-- Apart from the issuer's row, which the dispatcher keeps locked while it gives grants.
CREATE TABLE issuer_health (
    issuer_id   TEXT PRIMARY KEY REFERENCES issuers (id),
    failures    INTEGER NOT NULL,
    open_until  INTEGER NOT NULL,
    said        TEXT,
    at          INTEGER,
    halted      TEXT,
    halts       INTEGER NOT NULL DEFAULT 0,
    check_at    INTEGER
) STRICT;
