-- How often somebody changed a claim beside its own steps. Its version is the number of its events and this: a change raises it
-- in the transaction that makes it, and not only when it is put into the history.

ALTER TABLE domains ADD COLUMN edits BIGINT NOT NULL DEFAULT 0;
