-- What judge_object says of one object at this moment, and which run's brake holds it back (verdict held_back, with the reason for
-- which it is due), until an operator approves that run. Locks nothing: it is told, not acted upon.
CREATE OR REPLACE FUNCTION explain_object(p_report text, p_epoch integer, p_counter bigint, p_object text)
RETURNS TABLE (verdict text, reason text, until timestamptz, held_back_run bigint)
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT CASE WHEN h.run_id IS NULL THEN j.verdict ELSE 'held_back' END, j.reason, j.until, h.run_id
    FROM object o
    JOIN report r USING (report_id)
    CROSS JOIN LATERAL judge_object(o, r, (SELECT floor_epoch FROM epoch ORDER BY epoch DESC LIMIT 1), fenceline_now()) j
    LEFT JOIN gc_run h ON h.run_id = o.held_back_run AND h.approved_at IS NULL AND j.verdict = 'due'
    WHERE (o.report_id, o.fence_epoch, o.fence_counter, o.object_id) = (p_report, p_epoch, p_counter, p_object)
$$;

REVOKE ALL ON FUNCTION explain_object FROM PUBLIC;
GRANT EXECUTE ON FUNCTION explain_object TO fenceline_service;
