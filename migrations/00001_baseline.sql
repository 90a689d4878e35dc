-- The tables. What may be written to them, and by whom, is in functions/: the service's role may
-- only SELECT here and EXECUTE there.
--
-- Ids and keys are COLLATE "C": storages list in byte order, and other collations do not.
-- A fence is two columns, compared as a row: (epoch, counter).

-- +goose Up

-- +goose StatementBegin
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'fenceline_service') THEN
        CREATE ROLE fenceline_service NOLOGIN;
    END IF;
EXCEPTION
    -- Roles belong to the cluster: another database of it may have been migrated at the same moment.
    WHEN duplicate_object OR unique_violation THEN NULL;
    WHEN insufficient_privilege THEN
        RAISE EXCEPTION 'the role fenceline_service does not exist, and % may not create it', current_user
            USING HINT = 'Run as an administrator: CREATE ROLE fenceline_service NOLOGIN;';
END
$$;
-- +goose StatementEnd

-- The oldest program that still works with this schema, as the number of the newest migration that
-- the program embeds. A migration that older programs cannot live with raises it. And a fingerprint of
-- the functions that were defined last.
CREATE TABLE schema_compatibility (
    only_row          boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    compatible_from   bigint NOT NULL,
    functions_digest  text NOT NULL
);
INSERT INTO schema_compatibility (compatible_from, functions_digest) VALUES (1, '');

-- Which catalog this is. Its bucket says so too, since two catalogs on one bucket would hand out the same keys.
CREATE TABLE deployment (
    only_row       boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    deployment_id  uuid NOT NULL
);
INSERT INTO deployment (deployment_id) VALUES (gen_random_uuid());

-- The epochs, and the identity of the database that was verified when each began.
CREATE TABLE epoch (
    epoch                  integer PRIMARY KEY CHECK (epoch >= 1),
    -- fences of epochs below this one are closed
    floor_epoch            integer NOT NULL CHECK (floor_epoch BETWEEN 1 AND epoch),
    began_at               timestamptz NOT NULL,
    reason                 text NOT NULL,
    system_identifier      text NOT NULL,
    timeline               text NOT NULL,
    postmaster_started_at  timestamptz NOT NULL,
    database_oid           oid NOT NULL,
    report_filenode        oid NOT NULL
);

-- One row a report, never deleted. It is the lock under which everything about the report is decided.
CREATE TABLE report (
    report_id            text COLLATE "C" PRIMARY KEY
                         CHECK (report_id ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$'),
    created_at           timestamptz NOT NULL,

    -- the greatest fence granted, applied by a publish, and barred by a revocation; 0.0 is none
    granted_epoch        integer NOT NULL DEFAULT 0,
    granted_counter      bigint  NOT NULL DEFAULT 0,
    accepted_epoch       integer NOT NULL DEFAULT 0,
    accepted_counter     bigint  NOT NULL DEFAULT 0,
    barred_epoch         integer NOT NULL DEFAULT 0,
    barred_counter       bigint  NOT NULL DEFAULT 0,
    barred_at            timestamptz,
    barred_by            text,
    barred_reason        text,

    -- the live lease, which always has the greatest granted fence
    lease_id             text COLLATE "C",
    lease_holder         text,
    lease_expires_at     timestamptz,

    -- the visible pointer: the newest version, and its object (none: withdrawn, or nothing published)
    version              bigint NOT NULL DEFAULT 0 CHECK (version >= 0),
    visible_epoch        integer,
    visible_counter      bigint,
    visible_object_id    text COLLATE "C",

    -- settings; NULL is the service's default
    fencing              text CHECK (fencing IN ('granted', 'accepted', 'live')),
    publishes_per_grant  text CHECK (publishes_per_grant IN ('many', 'one')),

    CONSTRAINT accepted_was_granted CHECK ((accepted_epoch, accepted_counter) <= (granted_epoch, granted_counter)),
    CONSTRAINT barred_was_granted   CHECK ((barred_epoch, barred_counter) <= (granted_epoch, granted_counter)),
    CONSTRAINT fences_are_whole     CHECK (granted_epoch >= 0 AND granted_counter >= 0
                                       AND accepted_epoch >= 0 AND accepted_counter >= 0
                                       AND barred_epoch >= 0 AND barred_counter >= 0),
    CONSTRAINT lease_is_whole       CHECK (num_nulls(lease_id, lease_holder, lease_expires_at) IN (0, 3)),
    CONSTRAINT pointer_is_whole     CHECK (num_nulls(visible_epoch, visible_counter, visible_object_id) IN (0, 3)),
    CONSTRAINT pointer_has_version  CHECK (version > 0 OR visible_object_id IS NULL)
);

-- One row a grant; also one for an id that was released before it was ever granted (fence NULL).
CREATE TABLE lease (
    report_id      text COLLATE "C" NOT NULL REFERENCES report,
    lease_id       text COLLATE "C" NOT NULL CHECK (lease_id ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'),
    holder         text CHECK (length(holder) BETWEEN 1 AND 200),
    ttl_ms         bigint CHECK (ttl_ms >= 1000),
    fence_epoch    integer CHECK (fence_epoch >= 1),
    fence_counter  bigint CHECK (fence_counter >= 1),
    granted_at     timestamptz,
    ended_at       timestamptz,
    end_reason     text CHECK (end_reason IN ('expired', 'superseded', 'released', 'revoked', 'epoch_closed')),
    created_at     timestamptz NOT NULL,
    PRIMARY KEY (report_id, lease_id),
    UNIQUE (report_id, fence_epoch, fence_counter),
    CONSTRAINT grant_is_whole CHECK (num_nulls(holder, ttl_ms, fence_epoch, fence_counter, granted_at) IN (0, 5)),
    CONSTRAINT end_is_whole   CHECK (num_nulls(ended_at, end_reason) IN (0, 2)),
    CONSTRAINT never_granted_is_ended CHECK (granted_at IS NOT NULL OR ended_at IS NOT NULL)
);
CREATE INDEX lease_newest ON lease (report_id, created_at, lease_id);
CREATE INDEX lease_ended ON lease (ended_at) WHERE ended_at IS NOT NULL;

-- One row a version, kept for ever. It copies what it says of the object, and so outlives it.
CREATE TABLE publication (
    report_id        text COLLATE "C" NOT NULL REFERENCES report,
    version          bigint NOT NULL CHECK (version >= 1),
    fence_epoch      integer NOT NULL,
    fence_counter    bigint NOT NULL,
    idempotency_key  text COLLATE "C" NOT NULL CHECK (length(idempotency_key) BETWEEN 1 AND 255),
    request_digest   bytea NOT NULL,
    -- the object's receipt; NULL where the publication is a withdrawal
    object_epoch     integer,
    object_counter   bigint,
    object_id        text COLLATE "C",
    object_key       text COLLATE "C",
    size             bigint,
    sha256           bytea,
    content_type     text,
    filename         text,
    metadata         jsonb NOT NULL,
    published_at     timestamptz NOT NULL,
    published_by     text,
    PRIMARY KEY (report_id, version),
    UNIQUE (report_id, idempotency_key),
    CONSTRAINT receipt_is_whole CHECK (num_nulls(object_epoch, object_counter, object_id, object_key, size, sha256) IN (0, 6))
);
CREATE INDEX publication_of_object ON publication (report_id, object_epoch, object_counter, object_id)
    WHERE object_id IS NOT NULL;

-- One row for the bytes of one key, from before they are uploaded until nothing of them can be in
-- flight any more.
CREATE TABLE object (
    report_id         text COLLATE "C" NOT NULL REFERENCES report,
    fence_epoch       integer NOT NULL CHECK (fence_epoch >= 1),
    fence_counter     bigint NOT NULL CHECK (fence_counter >= 1),
    object_id         text COLLATE "C" NOT NULL CHECK (object_id ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$'),
    prefix            text COLLATE "C" NOT NULL,
    key               text COLLATE "C" NOT NULL GENERATED ALWAYS AS
                      (prefix || 'reports/' || report_id || '/' || fence_epoch::text || '.' || fence_counter::text || '/' || object_id) STORED,
    state             text NOT NULL CHECK (state IN ('reserved', 'sealed', 'condemned', 'deleted')),

    -- what the worker declared before it uploaded
    content_type      text,
    filename          text,
    declared_size     bigint CHECK (declared_size >= 0),
    declared_sha256   bytea CHECK (length(declared_sha256) = 32),
    reserved_at       timestamptz NOT NULL,
    -- the end of the last upload URL that was handed out
    upload_until      timestamptz NOT NULL,

    -- what the storage was seen to hold
    size              bigint CHECK (size >= 0),
    sha256            bytea CHECK (length(sha256) = 32),
    etag              text,
    version_id        text COLLATE "C",
    sealed_at         timestamptz,
    checked_epoch     integer,

    -- from when the collector may condemn it; NULL: it is kept
    eligible_at       timestamptz,
    condemned_at      timestamptz,
    condemned_reason  text CHECK (condemned_reason IN ('never_sealed', 'never_published', 'superseded', 'discarded')),
    -- from when its bytes may be deleted; moved on by a delete that failed
    purge_after       timestamptz,
    purge_attempts    integer NOT NULL DEFAULT 0,
    deleted_at        timestamptz,

    PRIMARY KEY (report_id, fence_epoch, fence_counter, object_id),
    CONSTRAINT sealed_is_whole    CHECK (num_nulls(size, sha256, etag, sealed_at, checked_epoch) IN (0, 5)),
    CONSTRAINT sealed_is_known    CHECK (state <> 'sealed' OR sealed_at IS NOT NULL),
    CONSTRAINT reserved_is_open   CHECK (state <> 'reserved' OR sealed_at IS NULL),
    CONSTRAINT reserved_is_due    CHECK (state <> 'reserved' OR eligible_at IS NOT NULL),
    CONSTRAINT condemned_is_whole CHECK (num_nulls(condemned_at, condemned_reason, purge_after) IN (0, 3)),
    CONSTRAINT condemned_is_known CHECK ((state IN ('condemned', 'deleted')) = (condemned_at IS NOT NULL)),
    CONSTRAINT deleted_is_known   CHECK ((state = 'deleted') = (deleted_at IS NOT NULL))
);
CREATE INDEX object_due ON object (eligible_at, key) WHERE state IN ('reserved', 'sealed') AND eligible_at IS NOT NULL;
CREATE INDEX object_to_purge ON object (purge_after, key) WHERE state = 'condemned';
CREATE INDEX object_to_forget ON object (deleted_at) WHERE state = 'deleted';
CREATE INDEX object_condemned ON object (condemned_at) WHERE condemned_at IS NOT NULL;

-- One row a pass of the collector; at most one of them is under way.
CREATE TABLE gc_run (
    run_id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    dry_run          boolean NOT NULL,
    started_by       text NOT NULL,
    started_at       timestamptz NOT NULL,
    -- moved by every step; a run that has not moved for long has died and may be replaced
    beat_at          timestamptz NOT NULL,
    phase            text NOT NULL CHECK (phase IN ('condemn', 'purge', 'forget', 'done')),
    finished_at      timestamptz,
    outcome          text CHECK (outcome IN ('completed', 'failed', 'abandoned')),
    error            text,
    -- the brake, as measured when the run began: condemned without ever having been published
    brake_min           bigint NOT NULL,
    brake_objects       bigint NOT NULL,
    brake_bytes         bigint NOT NULL,
    brake_used_objects  bigint NOT NULL,
    brake_used_bytes    bigint NOT NULL,
    condemned        bigint NOT NULL DEFAULT 0,
    condemned_bytes  bigint NOT NULL DEFAULT 0,
    put_off          bigint NOT NULL DEFAULT 0,
    braked           bigint NOT NULL DEFAULT 0,
    deleted          bigint NOT NULL DEFAULT 0,
    deleted_bytes    bigint NOT NULL DEFAULT 0,
    delete_failed    bigint NOT NULL DEFAULT 0,
    forgotten        bigint NOT NULL DEFAULT 0,
    CONSTRAINT finish_is_whole CHECK (num_nulls(finished_at, outcome) IN (0, 2))
);
CREATE UNIQUE INDEX gc_run_under_way ON gc_run ((true)) WHERE finished_at IS NULL;

-- One row for what a pass did, or in a dry run would have done, with one object. No foreign key:
-- it outlives what it tells of.
CREATE TABLE gc_ledger (
    run_id         bigint NOT NULL,
    entry          bigint GENERATED ALWAYS AS IDENTITY,
    at             timestamptz NOT NULL,
    action         text NOT NULL CHECK (action IN ('condemned', 'put_off', 'braked', 'deleted', 'delete_failed', 'forgotten')),
    reason         text NOT NULL,
    detail         text,
    report_id      text COLLATE "C" NOT NULL,
    fence_epoch    integer NOT NULL,
    fence_counter  bigint NOT NULL,
    object_id      text COLLATE "C" NOT NULL,
    key            text COLLATE "C" NOT NULL,
    size           bigint,
    PRIMARY KEY (run_id, entry)
);

CREATE TABLE api_key (
    key_id      text COLLATE "C" PRIMARY KEY,
    hash        bytea NOT NULL CHECK (length(hash) = 32),
    name        text NOT NULL,
    role        text NOT NULL CHECK (role IN ('reader', 'worker', 'operator')),
    pattern     text COLLATE "C" NOT NULL CHECK (pattern ~ '^([A-Za-z0-9][A-Za-z0-9._-]{0,199})?[*]?$' AND pattern <> ''),
    created_at  timestamptz NOT NULL,
    expires_at  timestamptz,
    revoked_at  timestamptz
);

GRANT SELECT ON schema_compatibility, deployment, epoch, report, lease, publication, object, gc_run, gc_ledger, api_key
    TO fenceline_service;

-- +goose Down
DROP TABLE api_key, gc_ledger, gc_run, object, publication, lease, report, epoch, deployment, schema_compatibility;
