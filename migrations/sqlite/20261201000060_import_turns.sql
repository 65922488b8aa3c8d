-- Who paused, resumed or cancelled an import last, and when; and what keeps its claims from being ordered for.

ALTER TABLE imports ADD COLUMN turned_by TEXT;
ALTER TABLE imports ADD COLUMN turned_at INTEGER;
ALTER TABLE imports ADD COLUMN hold TEXT CHECK (hold IN ('paused_by_tenant', 'paused_by_operator', 'cancelled'));

UPDATE imports SET hold = CASE WHEN state = 'cancelled' THEN 'cancelled' WHEN tenant_id IS NOT NULL THEN 'paused_by_tenant'
    ELSE 'paused_by_operator' END
  WHERE state IN ('paused', 'cancelled');

CREATE INDEX imports_held ON imports (id) WHERE hold IS NOT NULL;
