-- Live names whose renewal would be refused by what was last seen of them: at most one open alert a name and check.
CREATE UNIQUE INDEX alerts_one_risk ON alerts (topic) WHERE kind = 'renewal_at_risk' AND resolved_at IS NULL;
-- Until when mail of an event waits for others like it; none where it is written as soon as it can be.
ALTER TABLE alert_events ADD COLUMN mail_at BIGINT;
-- What was seen before there were such alerts is judged once.
UPDATE expiry_looks SET due_at = 0, touched = touched + 1;
