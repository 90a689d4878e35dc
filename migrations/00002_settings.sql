-- What an operator may set, hold, erase and freeze, and what was refused.

-- +goose Up

-- The service's defaults of the settings that a report may have of its own: one row, written by `serve` from
-- its flags, so that all instances judge by the same.
CREATE TABLE service_default (
    only_row             boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    fencing              text NOT NULL CHECK (fencing IN ('granted', 'accepted', 'live')),
    publishes_per_grant  text NOT NULL CHECK (publishes_per_grant IN ('many', 'one')),
    retention_ms         bigint NOT NULL CHECK (retention_ms > 0),
    keep_versions        integer NOT NULL CHECK (keep_versions BETWEEN 0 AND 1000),
    -- The versions of all reports follow a change of keep_versions bit by bit: when it was changed, and the report up to
    -- which they have followed; NULL once all have.
    keep_changed_at      timestamptz,
    settled_to           text COLLATE "C"
);
INSERT INTO service_default (fencing, publishes_per_grant, retention_ms, keep_versions)
VALUES ('granted', 'many', 14 * 86400000, 0);

ALTER TABLE report
    -- how long a version's object is kept once nothing else keeps it; NULL is the service's default
    ADD retention_ms bigint CHECK (retention_ms > 0),
    -- how many versions are kept beyond the visible one, the newest that show an object
    ADD keep_versions integer CHECK (keep_versions BETWEEN 0 AND 1000);

ALTER TABLE publication
    ADD held_at       timestamptz,
    ADD held_by       text,
    ADD erased_at     timestamptz,
    ADD erased_by     text,
    ADD erase_reason  text,
    ADD CONSTRAINT hold_is_whole    CHECK (num_nulls(held_at, held_by) IN (0, 2)),
    ADD CONSTRAINT erasure_is_whole CHECK (num_nulls(erased_at, erased_by, erase_reason) IN (0, 3)),
    ADD CONSTRAINT held_is_there    CHECK (held_at IS NULL OR erased_at IS NULL AND object_id IS NOT NULL);
CREATE INDEX publication_held ON publication (report_id, version) WHERE held_at IS NOT NULL;

-- When the last reason to keep a published object ended: its retention counts from there, also when the
-- setting changes meanwhile.
ALTER TABLE object ADD unkept_at timestamptz;
-- Until now that was when the next version was published.
UPDATE object SET unkept_at = next.published_at
FROM (
    SELECT report_id, object_epoch, object_counter, object_id, max(version) AS last
    FROM publication
    WHERE object_id IS NOT NULL
    GROUP BY report_id, object_epoch, object_counter, object_id
) shown
JOIN publication next ON next.report_id = shown.report_id AND next.version = shown.last + 1
WHERE object.state = 'sealed' AND object.eligible_at IS NOT NULL
  AND (object.report_id, object.fence_epoch, object.fence_counter, object.object_id)
    = (shown.report_id, shown.object_epoch, shown.object_counter, shown.object_id);
CREATE INDEX object_kept ON object (report_id) WHERE state = 'sealed' AND eligible_at IS NULL;
CREATE INDEX object_waits ON object (unkept_at) WHERE state = 'sealed' AND unkept_at IS NOT NULL;
ALTER TABLE object DROP CONSTRAINT object_condemned_reason_check;
ALTER TABLE object ADD CONSTRAINT object_condemned_reason_check
    CHECK (condemned_reason IN ('never_sealed', 'never_published', 'superseded', 'discarded', 'erased'));

-- The one bucket that holds the catalog's objects: once it has one, it takes no other that does not say it is its.
ALTER TABLE deployment ADD bucket text;

-- Reports that only resolve, for as long as an incident lasts.
CREATE TABLE frozen_reports (
    pattern    text COLLATE "C" PRIMARY KEY CHECK (pattern ~ '^([A-Za-z0-9][A-Za-z0-9._-]{0,199})?[*]?$' AND pattern <> ''),
    frozen_at  timestamptz NOT NULL,
    frozen_by  text NOT NULL
);

-- What was refused for its fence, counted together where it repeats.
CREATE TABLE refusal (
    report_id          text COLLATE "C" NOT NULL REFERENCES report,
    code               text NOT NULL CHECK (code IN ('stale_fence', 'fence_not_granted')),
    presented_epoch    integer NOT NULL,
    presented_counter  bigint NOT NULL,
    refused_to         text COLLATE "C" NOT NULL, -- the key that asked
    reason             text,
    highest_epoch      integer NOT NULL,
    highest_counter    bigint NOT NULL,
    first_at           timestamptz NOT NULL,
    last_at            timestamptz NOT NULL,
    times              bigint NOT NULL DEFAULT 1,
    PRIMARY KEY (report_id, code, presented_epoch, presented_counter, refused_to)
);
CREATE INDEX refusal_newest ON refusal (report_id, last_at);
CREATE INDEX refusal_old ON refusal (last_at);

-- Epochs that an operator began, and until when a floor spares what was staged before it.
ALTER TABLE epoch ADD advanced_by text, ADD staged_until timestamptz;

-- A pause of the collector: while its row is there, no pass begins and the one under way stops.
CREATE TABLE gc_pause (
    only_row   boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    paused_at  timestamptz NOT NULL,
    paused_by  text NOT NULL
);

ALTER TABLE gc_run DROP CONSTRAINT gc_run_outcome_check;
ALTER TABLE gc_run ADD CONSTRAINT gc_run_outcome_check CHECK (outcome IN ('completed', 'failed', 'paused', 'abandoned'));

ALTER TABLE api_key ADD last_used_at timestamptz;

UPDATE schema_compatibility SET compatible_from = 2;

GRANT SELECT ON service_default, frozen_reports, refusal, gc_pause TO fenceline_service;

-- +goose Down
UPDATE gc_run SET outcome = 'failed' WHERE outcome = 'paused';
ALTER TABLE gc_run DROP CONSTRAINT gc_run_outcome_check;
ALTER TABLE gc_run ADD CONSTRAINT gc_run_outcome_check CHECK (outcome IN ('completed', 'failed', 'abandoned'));
DROP TABLE gc_pause, refusal, frozen_reports, service_default;
ALTER TABLE api_key DROP last_used_at;
ALTER TABLE epoch DROP advanced_by, DROP staged_until;
ALTER TABLE object DROP unkept_at; -- and with it object_waits
DROP INDEX object_kept;
ALTER TABLE deployment DROP bucket;
ALTER TABLE object DROP CONSTRAINT object_condemned_reason_check;
ALTER TABLE object ADD CONSTRAINT object_condemned_reason_check
    CHECK (condemned_reason IN ('never_sealed', 'never_published', 'superseded', 'discarded')) NOT VALID; -- what was erased stays so
ALTER TABLE publication DROP held_at, DROP held_by, DROP erased_at, DROP erased_by, DROP erase_reason;
ALTER TABLE report DROP retention_ms, DROP keep_versions;
UPDATE schema_compatibility SET compatible_from = 1;
