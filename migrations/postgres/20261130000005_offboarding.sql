-- Slugs that look alike are one: the form to which all spellings of a slug fold, each taken once and for ever. Slugs from
-- before that fold alike stay with their tenants; none of them can be taken again.
CREATE TABLE slug_skeletons (
    skeleton  TEXT PRIMARY KEY,
    slug      TEXT NOT NULL REFERENCES slugs (slug)
);

INSERT INTO slug_skeletons (skeleton, slug)
    SELECT replace(replace(replace(slug, '-', ''), '0', 'o'), '1', 'l') AS folded, min(slug) FROM slugs GROUP BY folded;

-- Tenants that are being taken off board: open until the last of their claims is on its way out.
CREATE TABLE offboardings (
    tenant_id    TEXT PRIMARY KEY REFERENCES tenants (id),
    actor        TEXT NOT NULL,
    begun_at     BIGINT NOT NULL,
    finished_at  BIGINT
);

CREATE INDEX offboardings_open ON offboardings (begun_at) WHERE finished_at IS NULL;

-- Since when the feed adds only, after a restore: edges keep what they have until the operator says that all is back.
ALTER TABLE feed ADD COLUMN recovering_since BIGINT;
