-- The method that a row names, as it was typed: a result file that is sent again says the same of it.

ALTER TABLE import_rows ADD COLUMN method TEXT;
