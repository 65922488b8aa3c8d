-- Claims that meet: the clock of a hand-over, and what the holder of a name or of a name above it is told of others' claims.

-- Positively seen time only: what was counted so far, and when the present stretch of it was last seen.
ALTER TABLE holdings ADD COLUMN successor_counted INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdings ADD COLUMN successor_seen_at INTEGER;
CREATE INDEX holdings_by_successor ON holdings (successor_id) WHERE successor_id IS NOT NULL;

-- News for a domain from somebody else's step: the domain's own next step writes it into its history. Each is said once.
CREATE TABLE notices (
    id         TEXT PRIMARY KEY,
    domain_id  TEXT NOT NULL REFERENCES domains (id),
    kind       TEXT NOT NULL CHECK (kind IN
                 ('proved_elsewhere', 'claim_beneath', 'handover_began', 'handover_ended', 'paired', 'partner_gone',
                  'redirect_set', 'redirect_dropped')),
    -- What it is said once for; never shown.
    about      TEXT NOT NULL,
    actor      TEXT NOT NULL,
    -- The name it is about.
    hostname   TEXT NOT NULL,
    at         INTEGER NOT NULL,
    heard_at   INTEGER,
    UNIQUE (domain_id, kind, about)
) STRICT;

CREATE INDEX notices_unheard ON notices (domain_id, id) WHERE heard_at IS NULL;

-- Of two linked claims (linked_domain_id, each to the other) one may send its visitors to the other.
ALTER TABLE domains ADD COLUMN redirects INTEGER NOT NULL DEFAULT 0;
CREATE INDEX domains_by_link ON domains (linked_domain_id) WHERE linked_domain_id IS NOT NULL;
-- Where an edge sends the visitors of a host once it serves that name, too.
ALTER TABLE routes ADD COLUMN redirect_to TEXT;
