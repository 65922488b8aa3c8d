-- When a name's certificate is to be looked at: at once when it was stored, switched or let go of, else when it crosses its next
-- threshold. A pass reads what is due and nothing else, however many names there are.
CREATE TABLE expiry_looks (
    domain_id  TEXT PRIMARY KEY REFERENCES domains (id),
    due_at     BIGINT NOT NULL,
    -- Raised by whoever changes something: a look that began before does not put it off.
    touched    BIGINT NOT NULL
);

INSERT INTO expiry_looks (domain_id, due_at, touched)
    SELECT id, 0, 1 FROM domains WHERE claim IN ('live', 'releasing') AND certificate_id IS NOT NULL;

CREATE INDEX expiry_looks_due ON expiry_looks (due_at, domain_id);
-- The thresholds that these moments were found by: with others every name is looked at once.
ALTER TABLE notify_cursor ADD COLUMN thresholds TEXT NOT NULL DEFAULT '';
-- What an edge was seen to serve instead is found by the certificate that the domain has.
CREATE INDEX domains_by_certificate ON domains (certificate_id) WHERE certificate_id IS NOT NULL;
