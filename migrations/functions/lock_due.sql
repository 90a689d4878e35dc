-- Locks the reports of the candidates FOR SHARE by id, which holds every publish of them off, and then the candidates FOR UPDATE by
-- key, but for those that another has locked. Answers the keys that are locked now.
CREATE OR REPLACE FUNCTION lock_due(p_candidates object[]) RETURNS text[]
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
BEGIN
    PERFORM FROM report
    WHERE report_id IN (SELECT report_id FROM unnest(p_candidates))
    ORDER BY report_id
    FOR SHARE;
    RETURN ARRAY(
        SELECT o.key
        FROM object o
        JOIN unnest(p_candidates) u USING (report_id, fence_epoch, fence_counter, object_id)
        ORDER BY o.key
        FOR UPDATE OF o SKIP LOCKED);
END
$$;

REVOKE ALL ON FUNCTION lock_due FROM PUBLIC;
