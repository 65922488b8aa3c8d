-- A replacement that cannot wait: its orders stand in the lane of renewals, among those whose certificate is due.
ALTER TABLE reissues ADD COLUMN hurries INTEGER NOT NULL DEFAULT 0;
