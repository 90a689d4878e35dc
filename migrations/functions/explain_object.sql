-- What judge_object says of one object at this moment. Locks nothing: it is told, not acted upon.
CREATE OR REPLACE FUNCTION explain_object(p_report text, p_epoch integer, p_counter bigint, p_object text)
RETURNS TABLE (verdict text, reason text, until timestamptz)
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT j.verdict, j.reason, j.until
    FROM object o
    JOIN report r USING (report_id)
    CROSS JOIN LATERAL judge_object(o, r, (SELECT floor_epoch FROM epoch ORDER BY epoch DESC LIMIT 1), fenceline_now()) j
    WHERE (o.report_id, o.fence_epoch, o.fence_counter, o.object_id) = (p_report, p_epoch, p_counter, p_object)
$$;

REVOKE ALL ON FUNCTION explain_object FROM PUBLIC;
GRANT EXECUTE ON FUNCTION explain_object TO fenceline_service;
