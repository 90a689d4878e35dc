-- What a listing of the bucket shows and the rows do not know.
--
-- compatible_from stays as it is: a program that knows nothing of the scan neither publishes nor discards what it found,
-- since the functions that it calls refuse it; its collector condemns and purges it like any other object.

-- +goose Up
ALTER TABLE object
    -- when the scan first saw its key, which no row knew; NULL: a worker reserved it. Its declared size is what was seen
    ADD found_at            timestamptz,
    -- and for how long it is kept from then on, and from the floor of a later epoch
    ADD found_retention_ms  bigint CHECK (found_retention_ms >= 0),
    -- when something was first seen in the bucket that its row says is not there: bytes of what was deleted, unfinished
    -- uploads of that and of what is sealed; NULL: nothing, as far as the last scan saw
    ADD leftover_at         timestamptz,
    ADD leftover_size       bigint CHECK (leftover_size >= 0),
    ADD leftover_uploads    boolean, -- unfinished uploads are among it
    ADD CONSTRAINT found_is_whole        CHECK (num_nulls(found_at, found_retention_ms) IN (0, 2)),
    ADD CONSTRAINT found_is_never_sealed CHECK (found_at IS NULL OR sealed_at IS NULL),
    ADD CONSTRAINT leftover_is_whole     CHECK (num_nulls(leftover_at, leftover_size, leftover_uploads) IN (0, 3));
-- In the order of a listing.
CREATE INDEX object_key ON object (key);
CREATE INDEX object_leftover ON object (key) WHERE leftover_at IS NOT NULL;

ALTER TABLE object DROP CONSTRAINT object_condemned_reason_check;
ALTER TABLE object ADD CONSTRAINT object_condemned_reason_check
    CHECK (condemned_reason IN ('never_sealed', 'never_published', 'superseded', 'discarded', 'erased', 'unknown'));

-- The one scan that may be under way: how far it is, so that the next pass goes on from there.
CREATE TABLE gc_scan (
    only_row      boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    began_at      timestamptz, -- NULL: none is under way
    run_id        bigint,      -- the pass that took it up last, whose record has what was counted so far
    part          text CHECK (part IN ('objects', 'uploads', 'leftovers')),
    after_key     bytea,       -- the last key that is done with: whatever others write there is not always text
    completed_at  timestamptz, -- when one was last complete
    CONSTRAINT position_is_whole CHECK (num_nulls(began_at, run_id, part, after_key) IN (0, 4))
);
INSERT INTO gc_scan DEFAULT VALUES;

ALTER TABLE gc_run
    -- what its scan has counted, with what those have that it took up; NULL: it has not scanned
    ADD scan_keys             bigint,
    ADD scan_unknown          bigint,
    ADD scan_returned         bigint,
    ADD scan_foreign_objects  bigint,
    ADD scan_foreign_bytes    bigint,
    ADD scan_foreign_sample   text[],
    ADD scan_completed        boolean,
    ADD CONSTRAINT scan_is_whole CHECK (num_nulls(scan_keys, scan_unknown, scan_returned, scan_foreign_objects,
                                                  scan_foreign_bytes, scan_foreign_sample, scan_completed) IN (0, 7));
ALTER TABLE gc_run DROP CONSTRAINT gc_run_phase_check;
ALTER TABLE gc_run ADD CONSTRAINT gc_run_phase_check CHECK (phase IN ('condemn', 'purge', 'forget', 'scan', 'done'));
ALTER TABLE gc_ledger DROP CONSTRAINT gc_ledger_action_check;
ALTER TABLE gc_ledger ADD CONSTRAINT gc_ledger_action_check
    CHECK (action IN ('condemned', 'put_off', 'braked', 'deleted', 'delete_failed', 'forgotten', 'found', 'aborted'));

GRANT SELECT ON gc_scan TO fenceline_service;

-- +goose Down
DELETE FROM gc_ledger WHERE action IN ('found', 'aborted');
ALTER TABLE gc_ledger DROP CONSTRAINT gc_ledger_action_check;
ALTER TABLE gc_ledger ADD CONSTRAINT gc_ledger_action_check
    CHECK (action IN ('condemned', 'put_off', 'braked', 'deleted', 'delete_failed', 'forgotten'));
UPDATE gc_run SET phase = 'forget' WHERE phase = 'scan';
ALTER TABLE gc_run DROP CONSTRAINT gc_run_phase_check;
ALTER TABLE gc_run ADD CONSTRAINT gc_run_phase_check CHECK (phase IN ('condemn', 'purge', 'forget', 'done'));
ALTER TABLE gc_run DROP scan_keys, DROP scan_unknown, DROP scan_returned, DROP scan_foreign_objects, DROP scan_foreign_bytes,
    DROP scan_foreign_sample, DROP scan_completed;
DROP TABLE gc_scan;
ALTER TABLE object DROP CONSTRAINT object_condemned_reason_check;
ALTER TABLE object ADD CONSTRAINT object_condemned_reason_check
    CHECK (condemned_reason IN ('never_sealed', 'never_published', 'superseded', 'discarded', 'erased')) NOT VALID; -- what was unknown stays so
DROP INDEX object_key;
ALTER TABLE object DROP found_at, DROP found_retention_ms, DROP leftover_at, DROP leftover_size, DROP leftover_uploads;
