-- What `fenceline verify` has looked at and found: whether the bytes of what is shown are there.
--
-- compatible_from stays as it is: a program that knows nothing of these tables does not write to them, and nothing
-- else depends on them.

-- +goose Up

-- One row a look at all bytes, or at those of some reports. It may be interrupted and gone on with: then it is the same row.
CREATE TABLE verify_run (
    verification_id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    deep           boolean NOT NULL,
    pattern        text COLLATE "C" NOT NULL CHECK (pattern <> ''),
    -- the reports of the pattern are below this; empty: to the end. at_report_id began where they begin
    range_below    text COLLATE "C" NOT NULL,
    started_by     text NOT NULL,
    started_at     timestamptz NOT NULL,
    epoch          integer NOT NULL,
    -- moved by every step; a run that has not moved for long has died and may be gone on with
    beat_at        timestamptz NOT NULL,
    -- how often it was begun or gone on with: whoever was written off meanwhile has an older number
    attempt        integer NOT NULL DEFAULT 1,
    finished_at    timestamptz,
    outcome        text CHECK (outcome IN ('completed', 'stopped', 'failed', 'abandoned')),
    error          text,
    -- the last object that was looked at, in the order of the object table's key; at first below the first
    at_report_id   text COLLATE "C" NOT NULL,
    at_epoch       integer NOT NULL DEFAULT 0,
    at_counter     bigint NOT NULL DEFAULT 0,
    at_object_id   text COLLATE "C" NOT NULL DEFAULT '',
    total_objects  bigint,
    total_bytes    bigint,
    objects        bigint NOT NULL DEFAULT 0,
    bytes          bigint NOT NULL DEFAULT 0,
    faults         bigint NOT NULL DEFAULT 0,
    CONSTRAINT verify_finish_is_whole CHECK (num_nulls(finished_at, outcome) IN (0, 2))
);
CREATE UNIQUE INDEX verify_run_under_way ON verify_run (deep) WHERE finished_at IS NULL;

-- One row a fault that a run has seen. It is present until a later look at the same object no longer sees it, or sees it anew.
CREATE TABLE verify_finding (
    verification_id         bigint NOT NULL REFERENCES verify_run ON DELETE CASCADE,
    report_id         text COLLATE "C" NOT NULL,
    fence_epoch       integer NOT NULL,
    fence_counter     bigint NOT NULL,
    object_id         text COLLATE "C" NOT NULL,
    key               text COLLATE "C" NOT NULL,
    -- the versions that show the object, the newest first and not all of many
    versions          bigint[] NOT NULL,
    visible           boolean NOT NULL,
    fault             text NOT NULL CHECK (fault IN ('missing', 'size', 'changed', 'digest', 'unreadable')),
    -- only who reads the bytes can see that it is over
    needs_deep        boolean NOT NULL,
    detail            text,
    -- what was published
    size              bigint NOT NULL,
    sha256            bytea NOT NULL,
    etag              text NOT NULL,
    version_id        text COLLATE "C",
    -- what is there, as far as it was seen
    found_size        bigint,
    found_sha256      bytea,
    found_etag        text,
    found_version_id  text COLLATE "C",
    first_at          timestamptz NOT NULL,
    found_at          timestamptz NOT NULL,
    present           boolean NOT NULL DEFAULT true,
    PRIMARY KEY (verification_id, report_id, fence_epoch, fence_counter, object_id)
);
CREATE UNIQUE INDEX verify_finding_present ON verify_finding (report_id, fence_epoch, fence_counter, object_id) WHERE present;

GRANT SELECT ON verify_run, verify_finding TO fenceline_service;

-- +goose Down
DROP TABLE verify_finding, verify_run;
