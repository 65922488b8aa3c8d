-- Renewals: when the certificate in use of each name is to be followed by the next one, and what the CA said of that.

CREATE TABLE renewals (
    domain_id       TEXT PRIMARY KEY REFERENCES domains (id),
    -- The certificate that all this is about.
    certificate_id  TEXT NOT NULL REFERENCES certificates (id),
    renew_at        BIGINT NOT NULL,
    -- The CA's window (RFC 9773) in which that moment was drawn; nothing where the certificate's life decides.
    window_start    BIGINT,
    window_end      BIGINT,
    explanation     TEXT,
    -- When the CA is asked next, how often in a row it could not be, and what was wrong with its last answer.
    poll_at         BIGINT NOT NULL,
    failures        BIGINT NOT NULL,
    said            TEXT,
    -- The CA did not take the certificate as one to be replaced.
    refused         BIGINT NOT NULL,
    -- The certificate before, until every counted edge has proven this one; edges serve it until then.
    former_id       TEXT,
    switch_at       BIGINT,
    -- The replacement out of turn that asks for the next one.
    reissue_id      TEXT
);

CREATE INDEX renewals_to_ask ON renewals (poll_at);
CREATE INDEX renewals_of_reissue ON renewals (reissue_id) WHERE reissue_id IS NOT NULL;

-- Names that are live already: by the certificate's life, spread over a twentieth of it.
INSERT INTO renewals (domain_id, certificate_id, renew_at, poll_at, failures, refused)
    SELECT d.id, c.id,
        c.not_before + CASE WHEN c.not_after - c.not_before < 864000000000 THEN (c.not_after - c.not_before) / 2
          ELSE (c.not_after - c.not_before) / 3 * 2 END - floor(random() * ((c.not_after - c.not_before) / 20))::bigint,
        c.stored_at + floor(random() * 3600000000)::bigint, 0, 0
    FROM domains d JOIN certificates c ON c.id = d.certificate_id
    WHERE d.claim = 'live' AND c.source = 'order' AND c.destroyed_at IS NULL;
UPDATE domains SET due_at = (SELECT r.renew_at FROM renewals r WHERE r.domain_id = domains.id)
    WHERE due_at > (SELECT r.renew_at FROM renewals r WHERE r.domain_id = domains.id);

-- Whether the CA was seen to take an order as the replacement of what it names: such orders cost nothing there.
ALTER TABLE issuers ADD COLUMN honours_replaces BIGINT NOT NULL DEFAULT 0;
-- A grant that was taken without the dispatcher, for an order that costs nothing.
ALTER TABLE grants ADD COLUMN free BIGINT NOT NULL DEFAULT 0;

-- Replacements out of turn: one row for each time that an operator asked for one.
CREATE TABLE reissues (
    id           TEXT PRIMARY KEY,
    -- What was selected, in words.
    selection    TEXT NOT NULL,
    actor        TEXT NOT NULL,
    certificates BIGINT NOT NULL,
    created_at   BIGINT NOT NULL,
    cancelled_at BIGINT
);

-- A replacement out of turn selects by serial number.
CREATE INDEX certificates_by_serial ON certificates (serial) WHERE destroyed_at IS NULL;
