-- Whether a tenant that left has a name that rests: asked before it is told anything, and before its contacts are forgotten.
CREATE INDEX holdings_at_rest ON holdings (tenant_id) WHERE state = 'quarantined';

-- Names that were let go of and lead here, by how long they have.
CREATE INDEX holdings_left_behind ON holdings (dangles_since, hostname) WHERE dangles_since IS NOT NULL;
