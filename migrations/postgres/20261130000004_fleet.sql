-- What an operator sees of a fleet is counted and listed by index. Where a domain stands is decided by the model from the row
-- and its order, and written by the one door with every outcome; rows of an earlier release are judged right after this
-- migration, by the same function.

ALTER TABLE domains ADD COLUMN standing TEXT NOT NULL DEFAULT '';
ALTER TABLE domains ADD COLUMN acts TEXT NOT NULL DEFAULT '';
ALTER TABLE domains ADD COLUMN standing_since BIGINT NOT NULL DEFAULT 0;
-- The end of the certificate in use while the name is live.
ALTER TABLE domains ADD COLUMN certificate_until BIGINT;

UPDATE domains SET standing_since = claim_since, certificate_until = CASE WHEN claim = 'live'
    THEN (SELECT c.not_after FROM certificates c WHERE c.id = domains.certificate_id) END;

CREATE INDEX domains_counted ON domains (claim, standing, acts);
CREATE INDEX domains_counted_by_tenant ON domains (tenant_id, claim, standing, acts);
CREATE INDEX domains_by_standing ON domains (standing, standing_since, id);
CREATE INDEX domains_by_actor ON domains (acts, standing_since, id);
CREATE INDEX domains_by_expiry ON domains (certificate_until, id) WHERE certificate_until IS NOT NULL;

-- A hostname is found by its beginning at any label down to the registered domain, in both spellings. Compared byte by byte.
CREATE TABLE domain_words (
    word       TEXT COLLATE "C" NOT NULL,
    domain_id  TEXT NOT NULL REFERENCES domains (id),
    PRIMARY KEY (word, domain_id)
);

-- Reads that would otherwise grow with the whole: an order's grants, orders by their age.
CREATE INDEX grants_by_order ON grants (order_id);
CREATE INDEX orders_waiting_by_age ON orders (issuer_id, id) WHERE state = 'waiting';
