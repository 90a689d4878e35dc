-- The door of every mutation. Takes the barrier in shared mode, which an advance of the epoch takes
-- exclusively, and so holds until the mutation has committed; then compares the database's identity
-- with the one that was last verified. Answers NULLs where it differs: nothing may be decided until
-- verify_epoch has been called.
CREATE OR REPLACE FUNCTION enter(OUT epoch integer, OUT floor_epoch integer)
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    -- A later statement must see what was committed while it waited for a lock.
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'fenceline: mutations run at READ COMMITTED, not at %', current_setting('transaction_isolation');
    END IF;
    IF pg_is_in_recovery() THEN
        RETURN;
    END IF;
    -- What is acknowledged must be on disk. For this transaction alone: a SET of the function's own
    -- would have ended before the commit.
    IF current_setting('synchronous_commit') IN ('off', 'local') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;

    PERFORM pg_advisory_xact_lock_shared(x'46454e43'::integer, 1);

    SELECT e.epoch, e.floor_epoch INTO enter.epoch, enter.floor_epoch
    FROM (SELECT * FROM epoch ORDER BY epoch DESC LIMIT 1) e
    JOIN database_identity() i
      ON (e.timeline, e.postmaster_started_at, e.database_oid, e.report_filenode)
       = (i.timeline, i.postmaster_started_at, i.database_oid, i.report_filenode);
END
$$;

REVOKE ALL ON FUNCTION enter FROM PUBLIC;
