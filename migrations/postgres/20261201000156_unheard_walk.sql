-- Since when the walk of the daily looks stands still, as no resolver of ours answers.
ALTER TABLE routine_cursors ADD COLUMN unheard_since BIGINT;
