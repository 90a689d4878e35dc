-- What holds the collector back: the brake, until an operator approves; its first runs, which only report; its time limit.
--
-- compatible_from stays as it is: an older program calls the same functions, which hold back what it would have condemned. It
-- knows no first run that only reports: beside a new one, on an installation where nothing was collected yet, it begins to.

-- +goose Up

-- The run whose brake first held the object back. It is not looked at again before that run is approved, or before it is due
-- by another time. What was condemned keeps it: an approved one does not count for the window.
ALTER TABLE object
    ADD held_back_run bigint,
    ADD CONSTRAINT held_back_is_due CHECK (held_back_run IS NULL OR eligible_at IS NOT NULL OR condemned_at IS NOT NULL);
DROP INDEX object_due;
CREATE INDEX object_due ON object (eligible_at, key)
    WHERE state IN ('reserved', 'sealed') AND eligible_at IS NOT NULL AND held_back_run IS NULL;
CREATE INDEX object_held_back ON object (held_back_run, eligible_at, key)
    WHERE state IN ('reserved', 'sealed') AND held_back_run IS NOT NULL;
CREATE INDEX object_stuck ON object (key) WHERE state = 'condemned' AND purge_attempts >= 10;

ALTER TABLE gc_run
    -- a pass of an installation that does not collect yet: dry, whatever was asked for
    ADD report_only       boolean NOT NULL DEFAULT false,
    -- the brake was set to a share of all
    ADD brake_released    boolean NOT NULL DEFAULT false,
    ADD braked_bytes      bigint NOT NULL DEFAULT 0,
    -- what the run held back, or only reported, was let go
    ADD approved_at       timestamptz,
    ADD approved_by       text,
    ADD approved_objects  bigint,
    ADD approved_bytes    bigint,
    -- the pass stops there; NULL: it has no limit
    ADD stop_at           timestamptz,
    -- how far the present phase is, in what it handles; the total is NULL where it is not known
    ADD phase_began_at    timestamptz,
    ADD phase_done        bigint NOT NULL DEFAULT 0,
    ADD phase_total       bigint,
    ADD CONSTRAINT approval_is_whole   CHECK (num_nulls(approved_at, approved_by, approved_objects, approved_bytes) IN (0, 4)),
    ADD CONSTRAINT report_only_is_dry  CHECK (dry_run OR NOT report_only);
-- Its time was over, or it was interrupted: the next goes on.
ALTER TABLE gc_run DROP CONSTRAINT gc_run_outcome_check;
ALTER TABLE gc_run ADD CONSTRAINT gc_run_outcome_check
    CHECK (outcome IN ('completed', 'failed', 'paused', 'abandoned', 'time_limit', 'stopped'));
CREATE INDEX gc_run_held_back ON gc_run (run_id) WHERE braked > 0 AND NOT dry_run;

-- What a pass did, counted by what was done and why.
CREATE TABLE gc_tally (
    run_id   bigint NOT NULL REFERENCES gc_run ON DELETE CASCADE,
    action   text NOT NULL,
    reason   text NOT NULL,
    objects  bigint NOT NULL,
    bytes    bigint NOT NULL,
    PRIMARY KEY (run_id, action, reason)
);
CREATE INDEX gc_ledger_failed ON gc_ledger (run_id, entry) WHERE action = 'delete_failed';

-- Since when passes collect; NULL: none has, and those that are to begin with a report only report. Where the
-- collector has worked before, nothing changes.
ALTER TABLE deployment ADD collecting_since timestamptz;
UPDATE deployment SET collecting_since = began.at
FROM (
    SELECT least((SELECT min(finished_at) FROM gc_run WHERE outcome = 'completed' AND NOT dry_run),
                 (SELECT min(condemned_at) FROM object WHERE condemned_at IS NOT NULL)) AS at
) began;

GRANT SELECT ON gc_tally TO fenceline_service;

-- +goose Down
ALTER TABLE deployment DROP collecting_since;
DROP INDEX gc_ledger_failed;
DROP TABLE gc_tally;
DROP INDEX gc_run_held_back;
UPDATE gc_run SET outcome = 'failed' WHERE outcome IN ('time_limit', 'stopped');
ALTER TABLE gc_run DROP CONSTRAINT gc_run_outcome_check;
ALTER TABLE gc_run ADD CONSTRAINT gc_run_outcome_check CHECK (outcome IN ('completed', 'failed', 'paused', 'abandoned'));
ALTER TABLE gc_run
    DROP report_only, DROP brake_released, DROP braked_bytes, DROP approved_at, DROP approved_by, DROP approved_objects,
    DROP approved_bytes, DROP stop_at, DROP phase_began_at, DROP phase_done, DROP phase_total;
DROP INDEX object_stuck;
DROP INDEX object_held_back;
DROP INDEX object_due;
ALTER TABLE object DROP held_back_run; -- and with it held_back_is_due: what was held back is due again
CREATE INDEX object_due ON object (eligible_at, key) WHERE state IN ('reserved', 'sealed') AND eligible_at IS NOT NULL;
