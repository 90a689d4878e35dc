-- Begins a pass of the collector, unless one is under way, or it is paused and the pass is no dry run. A run that has not moved for p_ttl_ms has
-- died: it is written off, and its place is free; should it wake, its next step is refused.
-- The brake is measured here, before anything is condemned, in one reading of all objects: how many objects and bytes that were
-- never published may be condemned within p_window_ms, and how many already were. What an operator approved does not count.
-- On an installation that does not collect yet a pass begins to, or with p_report_first only reports: it is dry then. One that
-- is p_scheduled does so once within the window.
-- Status: started, already_running, paused, reported (within the window, and nobody has approved it), epoch_in_doubt.
-- Locks: the barrier (shared), and an advisory lock of its own, so that of two that begin one does.
CREATE OR REPLACE FUNCTION begin_run(p_dry_run boolean, p_by text, p_ttl_ms bigint,
    p_brake_share double precision, p_brake_min bigint, p_window_ms bigint,
    p_report_first boolean DEFAULT false, p_scheduled boolean DEFAULT false, p_limit_ms bigint DEFAULT NULL)
RETURNS TABLE (status text, run_id bigint, report_only boolean)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_now    timestamptz;
    v_report boolean;
    b        record;
BEGIN
    IF (SELECT epoch FROM enter()) IS NULL THEN
        status := 'epoch_in_doubt';
        RETURN NEXT;
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
        status := 'paused';
        RETURN NEXT;
        RETURN;
    END IF;
    SELECT 'already_running', g.run_id INTO status, run_id FROM gc_run g WHERE finished_at IS NULL;
    IF status IS NOT NULL THEN
        RETURN NEXT;
        RETURN;
    END IF;

    v_report := NOT p_dry_run AND p_report_first AND (SELECT collecting_since FROM deployment) IS NULL;
    IF v_report AND p_scheduled AND EXISTS (
        SELECT FROM gc_run g
        WHERE g.report_only AND g.started_at > v_now - p_window_ms * interval '1 millisecond'
                                               -- one that broke off is tried again sooner, and not every few minutes
                                               / CASE g.outcome WHEN 'completed' THEN 1 ELSE 24 END) THEN
        status := 'reported';
        RETURN NEXT;
        RETURN;
    END IF;
    IF NOT p_dry_run AND NOT v_report THEN
        UPDATE deployment SET collecting_since = v_now WHERE collecting_since IS NULL;
    END IF;

    -- The share is of what the catalog has itself taken in: keys that somebody strews in the bucket do not let more go.
    SELECT count(*) FILTER (WHERE found_at IS NULL) AS objects,
           coalesce(sum(coalesce(size, declared_size, 0)) FILTER (WHERE found_at IS NULL), 0) AS bytes,
           count(*) FILTER (WHERE condemned_at IS NOT NULL) AS used_objects,
           coalesce(sum(coalesce(size, declared_size, 0)) FILTER (WHERE condemned_at IS NOT NULL), 0) AS used_bytes
    INTO b
    FROM object
    WHERE state IN ('reserved', 'sealed')
       OR condemned_at > v_now - p_window_ms * interval '1 millisecond'
          AND condemned_reason IN ('never_sealed', 'never_published', 'unknown') AND held_back_run IS NULL;

    RETURN QUERY
    INSERT INTO gc_run AS g (dry_run, report_only, started_by, started_at, beat_at, stop_at, phase, phase_began_at,
                             brake_released, brake_min, brake_objects, brake_bytes, brake_used_objects, brake_used_bytes)
    VALUES (p_dry_run OR v_report, v_report, p_by, v_now, v_now, v_now + p_limit_ms * interval '1 millisecond', 'condemn', v_now,
            p_brake_share >= 1, p_brake_min, floor(b.objects * p_brake_share), floor(b.bytes * p_brake_share), b.used_objects, b.used_bytes)
    RETURNING 'started', g.run_id, g.report_only;
END
$$;

REVOKE ALL ON FUNCTION begin_run FROM PUBLIC;
GRANT EXECUTE ON FUNCTION begin_run TO fenceline_service;
