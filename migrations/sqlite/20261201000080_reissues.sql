-- A replacement that was asked for while an order of the name was at the CA already is not answered by that order's certificate:
-- the mark of which order this is.
ALTER TABLE renewals ADD COLUMN reissue_past TEXT;

-- What was asked for is written down in one row and selected from there, page by page: whoever is killed on the way is followed by
-- the next. The selection for machines; nothing for those of before, which were selected at once.
ALTER TABLE reissues ADD COLUMN wanted TEXT;
-- Where the selection goes on; nothing once all is selected.
ALTER TABLE reissues ADD COLUMN marking TEXT;
-- How many of it were given up.
ALTER TABLE reissues ADD COLUMN given_up INTEGER NOT NULL DEFAULT 0;
ALTER TABLE reissues ADD COLUMN finished_at INTEGER;
UPDATE reissues SET finished_at = created_at
    WHERE NOT EXISTS (SELECT 1 FROM renewals r WHERE r.reissue_id = reissues.id);
CREATE INDEX reissues_open ON reissues (id) WHERE finished_at IS NULL;
