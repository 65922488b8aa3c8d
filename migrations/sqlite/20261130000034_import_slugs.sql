-- The tenants that a dry run would add, so that of several that people could mistake for each other it counts the first only.

CREATE TABLE import_slugs (
    import_id   TEXT NOT NULL REFERENCES imports (id),
    -- What all spellings fold to that people could mistake for it.
    skeleton    TEXT NOT NULL,
    slug        TEXT NOT NULL,
    PRIMARY KEY (import_id, skeleton)
) STRICT;
