-- Publishes, many at once: p_requests is a JSON array, answered in its order. Requests of one report
-- are applied one after the other, each seeing what the one before it did.
-- An element: report, epoch, counter, object_id | from_version | withdraw, expected_version, metadata,
-- idempotency_key, by. What it is answered stands in publish_one.
-- Locks: the barrier (shared); all reports by id; then every object that any of the requests may keep or
-- drop, by key. Two calls that name the same reports, or the same objects, therefore wait for each
-- other and never in a circle; and what the collector condemns it has locked in the same order.
CREATE OR REPLACE FUNCTION publish(p_requests jsonb)
RETURNS TABLE (place bigint, status text, reason text,
               highest_epoch integer, highest_counter bigint, granted_epoch integer, granted_counter bigint,
               expected_version bigint, actual_version bigint, visible boolean, receipt jsonb)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_epoch   integer;
    v_floor   integer;
    v_reports text[];
    q         record;
BEGIN
    SELECT epoch, floor_epoch INTO v_epoch, v_floor FROM enter();
    IF v_epoch IS NULL THEN
        RETURN QUERY
        SELECT n, 'epoch_in_doubt', NULL, NULL::integer, NULL::bigint, NULL::integer, NULL::bigint,
               NULL::bigint, NULL::bigint, NULL::boolean, NULL::jsonb
        FROM jsonb_array_elements(p_requests) WITH ORDINALITY AS e (request, n);
        RETURN;
    END IF;

    SELECT array_agg(DISTINCT e ->> 'report') INTO v_reports FROM jsonb_array_elements(p_requests) e;

    PERFORM FROM report WHERE report_id = ANY (v_reports) ORDER BY report_id FOR NO KEY UPDATE;

    PERFORM FROM object o
    JOIN (
        SELECT e ->> 'report' AS report_id, (e ->> 'epoch')::integer AS fence_epoch,
               (e ->> 'counter')::bigint AS fence_counter, e ->> 'object_id' AS object_id
        FROM jsonb_array_elements(p_requests) e
        UNION
        SELECT report_id, object_epoch, object_counter, object_id
        FROM jsonb_array_elements(p_requests) e
        JOIN publication p ON p.report_id = e ->> 'report' AND p.version = (e ->> 'from_version')::bigint
        UNION
        -- Of each report, what n publishes can push out of the versions that it keeps.
        SELECT r.report_id, p.object_epoch, p.object_counter, p.object_id
        FROM report r
        CROSS JOIN settings_of(r) s
        CROSS JOIN LATERAL (
            SELECT object_epoch, object_counter, object_id
            FROM publication
            WHERE report_id = r.report_id AND object_id IS NOT NULL
            ORDER BY version DESC
            OFFSET greatest(s.keep_versions + 1 - jsonb_array_length(p_requests), 0)
            LIMIT least(s.keep_versions + 1, jsonb_array_length(p_requests))
        ) p
        WHERE r.report_id = ANY (v_reports)
    ) touched USING (report_id, fence_epoch, fence_counter, object_id)
    ORDER BY o.key
    FOR NO KEY UPDATE OF o;

    FOR q IN SELECT n, request FROM jsonb_array_elements(p_requests) WITH ORDINALITY AS e (request, n) ORDER BY n
    LOOP
        RETURN QUERY SELECT q.n, a.* FROM publish_one(q.request, v_epoch, v_floor) a;
    END LOOP;
END
$$;

REVOKE ALL ON FUNCTION publish FROM PUBLIC;
GRANT EXECUTE ON FUNCTION publish TO fenceline_service;
