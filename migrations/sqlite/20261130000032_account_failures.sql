-- How often in a row a CA gave no account: it is asked less and less often.

ALTER TABLE issuers ADD COLUMN account_failures INTEGER NOT NULL DEFAULT 0;
