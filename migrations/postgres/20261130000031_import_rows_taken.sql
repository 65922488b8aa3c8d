-- Who got a name by an earlier row of the same file, however many rows with that name were refused before.

CREATE INDEX import_rows_taken ON import_rows (import_id, hostname, n)
    WHERE verdict IN ('claimed', 'already_yours', 'would_be_claimed');
DROP INDEX import_rows_by_name;
