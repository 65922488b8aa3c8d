-- The walk of the routine looks is one process's at a time: whose, until when, and how many took it so far.
ALTER TABLE routine_cursors ADD COLUMN owner TEXT;
ALTER TABLE routine_cursors ADD COLUMN leased_until INTEGER NOT NULL DEFAULT 0;
ALTER TABLE routine_cursors ADD COLUMN term INTEGER NOT NULL DEFAULT 0;
