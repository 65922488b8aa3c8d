-- The serial number of the certificate that an edge was seen to serve instead, spelt as in certificates; NULL where none was shown.
ALTER TABLE rollout_exceptions ADD COLUMN serial TEXT;
