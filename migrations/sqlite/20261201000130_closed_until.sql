-- Until when a row that the CA closed is closed, whatever is configured for its limit; `tat` is further ahead, by what the limit tolerates.
ALTER TABLE ledger ADD COLUMN closed_until INTEGER;
