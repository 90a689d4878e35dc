-- Brings the time from which up to p_limit superseded objects are due forward, where the service's retention has become shorter
-- than when it was noted. (One that has become longer counts by itself: the collector judges by it.)
-- Status: shortened (no more of them), more, epoch_in_doubt, run_ended, paused.
-- Locks: the barrier (shared); the run; the objects by key. No report: what is due is judged again under its report's lock.
CREATE OR REPLACE FUNCTION shorten_retention(p_run bigint, p_limit integer)
RETURNS TABLE (status text)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_dry       boolean;
    v_retention interval;
    v_now       timestamptz;
    v_count     bigint;
BEGIN
    SELECT e.status, e.dry_run INTO status, v_dry FROM enter_run(p_run) e;
    IF status IS NULL AND v_dry THEN
        status := 'shortened';
    END IF;
    IF status IS NOT NULL THEN
        RETURN NEXT;
        RETURN;
    END IF;
    v_now := fenceline_now();
    SELECT retention_ms * interval '1 millisecond' INTO v_retention FROM service_default;

    WITH late AS (
        SELECT o.report_id, o.fence_epoch, o.fence_counter, o.object_id
        FROM object o
        JOIN report r USING (report_id)
        WHERE o.state = 'sealed' AND o.unkept_at <= v_now - v_retention AND o.eligible_at > v_now AND r.retention_ms IS NULL
          AND coalesce(spared_until((SELECT floor_epoch FROM epoch ORDER BY epoch DESC LIMIT 1), true,
                                    (extract(epoch FROM v_retention) * 1000)::bigint), v_now) <= v_now
        ORDER BY o.key
        LIMIT p_limit
        FOR NO KEY UPDATE OF o SKIP LOCKED
    )
    UPDATE object o
    SET eligible_at = o.unkept_at + v_retention
    FROM late
    WHERE (o.report_id, o.fence_epoch, o.fence_counter, o.object_id) = (late.report_id, late.fence_epoch, late.fence_counter, late.object_id);
    GET DIAGNOSTICS v_count = ROW_COUNT;
    status := CASE WHEN v_count = p_limit THEN 'more' ELSE 'shortened' END;
    RETURN NEXT;
END
$$;

REVOKE ALL ON FUNCTION shorten_retention FROM PUBLIC;
GRANT EXECUTE ON FUNCTION shorten_retention TO fenceline_service;
