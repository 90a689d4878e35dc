-- Lets the versions of up to p_limit reports follow a changed default of keep_versions, from where the last call ended:
-- what is kept by it has no end any more, and what was kept and is not any more begins its retention, counted from the change.
-- Status: settled (all have followed), more, epoch_in_doubt.
-- Locks: the barrier (shared); the defaults, so that of two calls at once one goes on where the other ended; the reports by
-- id; their objects by key.
CREATE OR REPLACE FUNCTION settle_defaults(p_limit integer)
RETURNS TABLE (status text)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    d         service_default%ROWTYPE;
    v_reports text[];
BEGIN
    IF (SELECT epoch FROM enter()) IS NULL THEN
        status := 'epoch_in_doubt';
        RETURN NEXT;
        RETURN;
    END IF;
    SELECT * INTO d FROM service_default FOR NO KEY UPDATE;
    IF d.settled_to IS NULL THEN
        status := 'settled';
        RETURN NEXT;
        RETURN;
    END IF;

    SELECT array_agg(report_id) INTO v_reports
    FROM (
        SELECT report_id FROM report
        WHERE report_id > d.settled_to AND keep_versions IS NULL
        ORDER BY report_id
        LIMIT p_limit
        FOR NO KEY UPDATE
    ) r;

    PERFORM settle_object(o.report_id, o.fence_epoch, o.fence_counter, o.object_id, d.keep_changed_at)
    FROM (
        SELECT o.*
        FROM object o
        JOIN report r USING (report_id)
        WHERE o.report_id = ANY (v_reports) AND o.state = 'sealed'
          -- what waits already, and is not kept by the new default either, goes on waiting
          AND (o.eligible_at IS NULL OR kept_as(r, o.fence_epoch, o.fence_counter, o.object_id) IS NOT NULL)
          AND (o.eligible_at IS NULL
               OR (o.report_id, o.fence_epoch, o.fence_counter, o.object_id) IN (
                   SELECT n.report_id, n.object_epoch, n.object_counter, n.object_id
                   FROM unnest(v_reports) id
                   CROSS JOIN LATERAL newest_versions(id, d.keep_versions + 1) n))
        ORDER BY o.key
        FOR NO KEY UPDATE OF o
    ) o;

    status := CASE WHEN cardinality(v_reports) = p_limit THEN 'more' ELSE 'settled' END;
    UPDATE service_default SET settled_to = CASE WHEN cardinality(v_reports) = p_limit THEN v_reports[p_limit] END;
    RETURN NEXT;
END
$$;

REVOKE ALL ON FUNCTION settle_defaults FROM PUBLIC;
GRANT EXECUTE ON FUNCTION settle_defaults TO fenceline_service;
