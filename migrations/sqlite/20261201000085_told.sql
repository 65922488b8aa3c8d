-- What an event tells of an alert, and what each place was told last. Whether something is told still, and whether its end is,
-- follows from these rows alone, however often an alert was told again, grew tighter or was let go of meanwhile.

-- What is one story to whoever hears of it: one certificate of one domain, whatever its threshold; one condition of the platform.
ALTER TABLE alerts ADD COLUMN topic TEXT NOT NULL DEFAULT '';
UPDATE alerts SET topic = kind || '/' || subject || COALESCE('/' || certificate_id, '');

-- Every event that tells of an alert, for as long as the alert is kept.
CREATE TABLE alert_events (
    event_id   TEXT PRIMARY KEY,
    alert_id   TEXT NOT NULL REFERENCES alerts (id),
    topic      TEXT NOT NULL,
    domain_id  TEXT,
    says       TEXT NOT NULL CHECK (says IN ('begins', 'ends'))
) STRICT;

INSERT INTO alert_events (event_id, alert_id, topic, domain_id, says)
    SELECT raised_event, id, topic, domain_id, 'begins' FROM alerts;
INSERT INTO alert_events (event_id, alert_id, topic, domain_id, says)
    SELECT resolved_event, id, topic, domain_id, 'ends' FROM alerts WHERE resolved_event IS NOT NULL;

-- One row a place (a webhook's id, an address) and topic that it takes for open.
CREATE TABLE told (
    place     TEXT NOT NULL,
    topic     TEXT NOT NULL,
    event_id  TEXT NOT NULL,
    -- 0 while it is not known whether it arrived.
    sure      INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    PRIMARY KEY (place, topic)
) STRICT;

INSERT INTO told (place, topic, event_id, sure, at)
    SELECT d.endpoint_id, a.topic, MAX(a.raised_event), 1, MAX(COALESCE(d.done_at, d.created_at))
    FROM alerts a JOIN deliveries d ON d.event_id = a.raised_event AND d.state = 'delivered'
    WHERE a.resolved_at IS NULL OR EXISTS (SELECT 1 FROM deliveries e WHERE e.endpoint_id = d.endpoint_id
        AND e.event_id = a.resolved_event AND e.state = 'pending')
    GROUP BY d.endpoint_id, a.topic;
INSERT INTO told (place, topic, event_id, sure, at)
    SELECT m.address, a.topic, MAX(a.raised_event), 1, MAX(COALESCE(m.done_at, m.created_at))
    FROM alerts a JOIN mail_items m ON m.event_id = a.raised_event AND m.state = 'sent'
    WHERE a.resolved_at IS NULL OR EXISTS (SELECT 1 FROM mail_items n WHERE n.address = m.address
        AND n.event_id = a.resolved_event AND n.state = 'pending')
    GROUP BY m.address, a.topic;

CREATE INDEX told_by_age ON told (at);
CREATE INDEX alert_events_by_alert ON alert_events (alert_id);
CREATE INDEX alerts_open_topic ON alerts (topic) WHERE resolved_at IS NULL;
CREATE INDEX alerts_over ON alerts (resolved_at) WHERE resolved_at IS NOT NULL;
-- The count by cause reads this and no row.
DROP INDEX alerts_open;
CREATE INDEX alerts_open ON alerts (kind, cause, threshold) WHERE resolved_at IS NULL;
DROP INDEX alerts_by_raised;
DROP INDEX alerts_by_resolved;
-- Those of the platform, a handful among all that are open.
CREATE INDEX alerts_of_platform ON alerts (id) WHERE domain_id IS NULL AND resolved_at IS NULL;
