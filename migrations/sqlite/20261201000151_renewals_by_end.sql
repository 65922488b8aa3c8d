-- When the certificate ends that a renewal is to replace; in its lane what ends first goes first. The last moment there is for all others.
ALTER TABLE orders ADD COLUMN ends_at INTEGER NOT NULL DEFAULT 9223372036854775807;
UPDATE orders SET ends_at = COALESCE((SELECT d.certificate_until FROM domains d WHERE d.id = orders.domain_id), 9223372036854775807)
    WHERE lane = 'renewal' AND state NOT IN ('issued', 'failed', 'lost');

DROP INDEX orders_in_line;
CREATE INDEX orders_in_line ON orders (issuer_id, lane, tenant_id, ends_at, id)
    WHERE state = 'waiting' AND held_by IS NULL AND not_before < 9223372036854775807;
