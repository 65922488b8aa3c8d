-- The lane of a claim: made one by one, or imported with many others. Imported names that wait for their records are looked at
-- in a slow lap of their own until something about them changes.
ALTER TABLE domains ADD COLUMN lane TEXT NOT NULL DEFAULT 'single' CHECK (lane IN ('single', 'bulk'));

-- Whose turn it is in that lap, and where each tenant's line of first looks ends.
CREATE INDEX domains_lap ON domains (due_at) WHERE lane = 'bulk' AND claim IN ('awaiting_dns', 'queued');
CREATE INDEX domains_first_looks ON domains (tenant_id, due_at) WHERE lane = 'bulk' AND looked_at IS NULL;
