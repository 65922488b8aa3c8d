-- Indexes that are the right ones whatever the planner knows of the tables: a database that was never analysed, as a new one is
-- when a large import comes, took the claim for narrower than a hostname, a turn or a slot, and went through every waiting name.
DROP INDEX domains_by_hostname;
CREATE INDEX domains_by_hostname ON domains (hostname, claim);
DROP INDEX domains_lap;
CREATE INDEX domains_lap ON domains (lane, due_at, claim) WHERE claim IN ('awaiting_dns', 'queued');
DROP INDEX domains_by_slot;
CREATE INDEX domains_by_slot ON domains (claim, substr(id, 33, 4), id) WHERE claim = 'live';

-- Whoever asks for a token that is no more, and a domain's or a platform's own routes.
CREATE INDEX challenges_by_token ON challenges (token);
CREATE INDEX routes_by_domain ON routes (domain_id);
CREATE INDEX routes_of_platform ON routes (tenant_id) WHERE domain_id IS NULL;
