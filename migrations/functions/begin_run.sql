-- Begins a pass of the collector, unless one is under way, or it is paused and the pass is no dry run. A run that has not moved for p_ttl_ms has
-- died: it is written off, and its place is free; should it wake, its next step is refused.
-- The brake is measured here, before anything is condemned: how many objects and bytes that were never
-- published may be condemned within p_window_ms, and how many already were.
-- Status: started, already_running, paused, epoch_in_doubt.
-- Locks: the barrier (shared), and an advisory lock of its own, so that of two that begin one does.
CREATE OR REPLACE FUNCTION begin_run(p_dry_run boolean, p_by text, p_ttl_ms bigint,
    p_brake_share double precision, p_brake_min bigint, p_window_ms bigint)
RETURNS TABLE (status text, run_id bigint)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz;
    b     record;
BEGIN
    IF (SELECT epoch FROM enter()) IS NULL THEN
        RETURN QUERY SELECT 'epoch_in_doubt', NULL::bigint;
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock(x'46454e43'::integer, 2);
    v_now := fenceline_now();

    UPDATE gc_run
    SET finished_at = v_now, outcome = 'abandoned', error = 'it stopped moving'
    WHERE finished_at IS NULL
      AND (beat_at + p_ttl_ms * interval '1 millisecond' <= v_now
           OR beat_at - p_ttl_ms * interval '1 millisecond' >= v_now); -- the clock has stepped back

    IF NOT p_dry_run AND EXISTS (SELECT FROM gc_pause) THEN
        RETURN QUERY SELECT 'paused', NULL::bigint;
        RETURN;
    END IF;
    SELECT 'already_running', g.run_id INTO status, run_id FROM gc_run g WHERE finished_at IS NULL;
    IF status IS NOT NULL THEN
        RETURN NEXT;
        RETURN;
    END IF;

    SELECT count(*) AS objects, coalesce(sum(coalesce(size, declared_size, 0)), 0) AS bytes,
           count(*) FILTER (WHERE condemned_at IS NOT NULL) AS used_objects,
           coalesce(sum(coalesce(size, declared_size, 0)) FILTER (WHERE condemned_at IS NOT NULL), 0) AS used_bytes
    INTO b
    FROM object
    WHERE state IN ('reserved', 'sealed')
       OR condemned_at > v_now - p_window_ms * interval '1 millisecond'
          AND condemned_reason IN ('never_sealed', 'never_published', 'unknown');

    RETURN QUERY
    INSERT INTO gc_run (dry_run, started_by, started_at, beat_at, phase,
                        brake_min, brake_objects, brake_bytes, brake_used_objects, brake_used_bytes)
    VALUES (p_dry_run, p_by, v_now, v_now, 'condemn',
            p_brake_min, floor(b.objects * p_brake_share), floor(b.bytes * p_brake_share), b.used_objects, b.used_bytes)
    RETURNING 'started', run_id;
END
$$;

REVOKE ALL ON FUNCTION begin_run FROM PUBLIC;
GRANT EXECUTE ON FUNCTION begin_run TO fenceline_service;
