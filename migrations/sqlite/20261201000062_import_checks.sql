-- When somebody asked for a look at all names of an import; and its claims in the order in which a page lists them.

ALTER TABLE imports ADD COLUMN checked_at INTEGER;

DROP INDEX domains_by_import;
CREATE INDEX domains_by_import ON domains (import_id, claim, id) WHERE import_id IS NOT NULL;
