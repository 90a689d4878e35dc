-- Writes down and counts, for a dry run, which of the leftovers that a listing has shown a scan would remove: p_keys, p_uploads and
-- p_spared_ms are as in note_leftovers. Answers a row for each: deleted, or aborted where only its unfinished uploads would go.
-- The caller holds the run's row. No other lock: nothing is changed.
CREATE OR REPLACE FUNCTION would_remove(p_run bigint, p_uploads boolean, p_keys jsonb, p_spared_ms bigint)
RETURNS TABLE (status text, report_id text, fence_epoch integer, fence_counter bigint, object_id text, key text, size bigint)
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_now     timestamptz := fenceline_now();
    v_objects object[];
    v_actions text[];
    v_sizes   bigint[];
BEGIN
    SELECT array_agg(o ORDER BY o.key), array_agg(CASE o.state WHEN 'deleted' THEN 'deleted' ELSE 'aborted' END ORDER BY o.key),
           array_agg(k.size ORDER BY o.key)
    INTO v_objects, v_actions, v_sizes
    FROM jsonb_populate_recordset(NULL::object, p_keys) k
    JOIN object o USING (report_id, fence_epoch, fence_counter, object_id)
    WHERE NOT is_frozen(o.report_id)
      AND (o.state = 'deleted'
           OR p_uploads AND o.state = 'sealed' AND o.leftover_at <= v_now - p_spared_ms * interval '1 millisecond');

    PERFORM note_batch(p_run, v_objects, v_actions, (SELECT array_agg('returned'::text) FROM unnest(v_actions)), v_sizes, v_now);
    UPDATE gc_run
    SET scan_returned = scan_returned + n.seen, deleted = deleted + n.gone, deleted_bytes = deleted_bytes + n.bytes
    FROM (SELECT count(*) AS seen, count(*) FILTER (WHERE action = 'deleted') AS gone,
                 coalesce(sum(size) FILTER (WHERE action = 'deleted'), 0) AS bytes
          FROM unnest(v_actions, v_sizes) AS would (action, size)) n
    WHERE run_id = p_run;

    RETURN QUERY
    SELECT v.action, u.report_id, u.fence_epoch, u.fence_counter, u.object_id, u.key, v.size
    FROM unnest(v_objects) WITH ORDINALITY u
    JOIN unnest(v_actions, v_sizes) WITH ORDINALITY v (action, size, ordinality) USING (ordinality)
    ORDER BY ordinality;
END
$$;

REVOKE ALL ON FUNCTION would_remove FROM PUBLIC;
