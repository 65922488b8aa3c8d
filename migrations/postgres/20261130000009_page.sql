-- What Domain Connect offers for the zone of a name that is still to be set up: asked for beside the looks, shown by the page.

CREATE TABLE domain_connect (
    domain_id  TEXT PRIMARY KEY REFERENCES domains (id),
    -- The zone the name lies in; empty while it was not found.
    zone       TEXT NOT NULL,
    -- The offer as a document; none where the zone's host makes none.
    offer      TEXT,
    looked_at  BIGINT NOT NULL,
    -- When it is asked for again; while somebody asks, until when that is theirs alone.
    due_at     BIGINT NOT NULL
);

CREATE INDEX domain_connect_by_zone ON domain_connect (zone, looked_at);

-- Whose offers are to be asked for.
CREATE INDEX domains_awaiting ON domains (created_at) WHERE claim = 'awaiting_dns';
