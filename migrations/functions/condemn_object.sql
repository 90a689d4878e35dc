-- Condemns an object for good: it can never be shown again, and its bytes go once the grace is over, counted from the end of
-- the last upload URL where that is later. The caller holds the report's row and the object's, and has judged it.
CREATE OR REPLACE FUNCTION condemn_object(o object, p_reason text, p_grace_ms bigint, p_now timestamptz) RETURNS void
LANGUAGE sql
SET search_path = public, pg_temp
AS $$
    UPDATE object
    SET state = 'condemned', condemned_at = p_now, condemned_reason = p_reason, eligible_at = NULL,
        purge_after = greatest(p_now, upload_until) + p_grace_ms * interval '1 millisecond'
    WHERE (report_id, fence_epoch, fence_counter, object_id) = (o.report_id, o.fence_epoch, o.fence_counter, o.object_id)
$$;

REVOKE ALL ON FUNCTION condemn_object FROM PUBLIC;
