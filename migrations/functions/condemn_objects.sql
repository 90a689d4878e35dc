-- Condemns objects for good, each for its reason, where that is not NULL: they can never be shown again, and their bytes go
-- once the grace is over, counted from the end of the last upload URL where that is later. The caller holds the reports'
-- rows and the objects', and has judged them.
CREATE OR REPLACE FUNCTION condemn_objects(p_objects object[], p_reasons text[], p_grace_ms bigint, p_now timestamptz) RETURNS void
LANGUAGE sql
SET search_path = public, pg_temp
AS $$
    UPDATE object o
    SET state = 'condemned', condemned_at = p_now, condemned_reason = v.reason, eligible_at = NULL,
        purge_after = greatest(p_now, o.upload_until) + p_grace_ms * interval '1 millisecond'
    FROM unnest(p_objects) WITH ORDINALITY u
    JOIN unnest(p_reasons) WITH ORDINALITY v (reason, ordinality) USING (ordinality)
    WHERE (o.report_id, o.fence_epoch, o.fence_counter, o.object_id) = (u.report_id, u.fence_epoch, u.fence_counter, u.object_id)
      AND v.reason IS NOT NULL
$$;

REVOKE ALL ON FUNCTION condemn_objects FROM PUBLIC;
