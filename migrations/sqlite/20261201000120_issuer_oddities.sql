-- What is odd about an issuer that answers well, in the words of whoever met it last, until somebody sees that it is not so. Apart
-- from its health: none of this keeps anybody from asking it.
CREATE TABLE issuer_oddities (
    issuer_id  TEXT NOT NULL REFERENCES issuers (id),
    oddity     TEXT NOT NULL,
    said       TEXT NOT NULL,
    at         INTEGER NOT NULL,
    PRIMARY KEY (issuer_id, oddity)
) STRICT;
