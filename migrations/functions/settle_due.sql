-- Does with the candidates of a pass what was judged of each: condemns it, notes that the run's brake holds it back, or from when it
-- may be due. The caller holds the run's row, the reports' and the objects'.
CREATE OR REPLACE FUNCTION settle_due(p_run bigint, p_candidates object[], p_statuses text[], p_reasons text[], p_untils timestamptz[],
    p_grace_ms bigint, p_now timestamptz) RETURNS void
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
BEGIN
    PERFORM condemn_objects(p_candidates, ARRAY(
        SELECT CASE v.status WHEN 'condemned' THEN v.reason END
        FROM unnest(p_statuses, p_reasons) WITH ORDINALITY v (status, reason, n)
        ORDER BY n), p_grace_ms, p_now);
    UPDATE object o
    SET eligible_at = coalesce(v.until, o.eligible_at),
        held_back_run = CASE v.status WHEN 'braked' THEN p_run ELSE o.held_back_run END
    FROM unnest(p_candidates) WITH ORDINALITY u
    JOIN unnest(p_statuses, p_untils) WITH ORDINALITY v (status, until, ordinality) USING (ordinality)
    WHERE (o.report_id, o.fence_epoch, o.fence_counter, o.object_id) = (u.report_id, u.fence_epoch, u.fence_counter, u.object_id)
      AND (v.until IS NOT NULL OR v.status = 'braked');
END
$$;

REVOKE ALL ON FUNCTION settle_due FROM PUBLIC;
