-- Places: their URLs are sealed, refusals are counted apart from silence, and what is wrong on our side is written beside them.

-- The whole URL, sealed under the place's id; `url` holds what an older release wrote until it is sealed, and nothing after.
ALTER TABLE webhook_endpoints ADD COLUMN sealed_url BLOB;
-- What others than its owner see: the host, and the beginning of the URL's digest.
ALTER TABLE webhook_endpoints ADD COLUMN host TEXT NOT NULL DEFAULT '';
ALTER TABLE webhook_endpoints ADD COLUMN fingerprint TEXT NOT NULL DEFAULT '';
-- When it was last tried, and for how much time, seen from try to try, it refused and was silent: a clock that jumps, a process
-- that stood still, a network of ours that was away for days add little.
ALTER TABLE webhook_endpoints ADD COLUMN tried_at INTEGER;
ALTER TABLE webhook_endpoints ADD COLUMN refused_for INTEGER NOT NULL DEFAULT 0;
ALTER TABLE webhook_endpoints ADD COLUMN silent_for INTEGER NOT NULL DEFAULT 0;
-- Why nothing can be sent to it for a reason of ours.
ALTER TABLE webhook_endpoints ADD COLUMN fault TEXT;

-- Tries that the receiver answered with a refusal of this very thing; only these count towards giving it up.
ALTER TABLE deliveries ADD COLUMN refusals INTEGER NOT NULL DEFAULT 0;
-- Somebody asked for this one: it is sent whatever became of what it tells.
ALTER TABLE deliveries ADD COLUMN asked INTEGER NOT NULL DEFAULT 0;
ALTER TABLE mail_items ADD COLUMN refusals INTEGER NOT NULL DEFAULT 0;

CREATE INDEX webhook_endpoints_off ON webhook_endpoints (disabled_why, id) WHERE disabled_at IS NOT NULL;
CREATE INDEX webhook_endpoints_faulty ON webhook_endpoints (id) WHERE fault IS NOT NULL;
CREATE INDEX webhook_endpoints_in_the_open ON webhook_endpoints (id) WHERE sealed_url IS NULL;
-- What waits, told by place and age.
CREATE INDEX deliveries_waiting ON deliveries (created_at) WHERE state = 'pending';
-- Mail by address: what waits, and when one was last written to.
CREATE INDEX mail_items_waiting ON mail_items (address, due_at) WHERE state = 'pending';
CREATE INDEX mail_items_sent ON mail_items (address, done_at) WHERE state = 'sent';
CREATE INDEX mail_items_tried ON mail_items (created_at) WHERE state = 'pending' AND attempts > 0;
CREATE INDEX mail_items_given_up ON mail_items (done_at) WHERE state = 'given_up';
