-- Names that were let go of are looked at until they lead elsewhere; while they do not, their former tenants are reminded.

-- When a name at rest is looked at next; NULL for names that do not rest.
ALTER TABLE holdings ADD COLUMN watch_at INTEGER;
-- Since when it is seen to lead to us nevertheless, and the last reminder.
ALTER TABLE holdings ADD COLUMN dangles_since INTEGER;
ALTER TABLE holdings ADD COLUMN reminded_at INTEGER;

UPDATE holdings SET watch_at = since + 3600000000, looks_off = 0, first_off_at = NULL WHERE state = 'quarantined';

CREATE INDEX holdings_watched ON holdings (watch_at) WHERE watch_at IS NOT NULL;
CREATE INDEX holdings_dangling ON holdings (hostname) WHERE dangles_since IS NOT NULL;
