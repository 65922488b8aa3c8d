-- A step reads the open order of its domain, however many the domain had before: years of renewals leave a row each.
CREATE INDEX orders_open_by_domain ON orders (domain_id, id) WHERE state NOT IN ('issued', 'failed', 'lost');

-- The issuer that a new order would go to, without a sort.
CREATE INDEX issuers_by_preference
    ON issuers ((CASE WHEN preference < 1000000000 AND account_url IS NOT NULL THEN 0 ELSE 1 END), preference, name);

-- Certificates that still have their key, of those that a domain had.
CREATE INDEX certificates_kept ON certificates (domain_id, id) WHERE destroyed_at IS NULL;
