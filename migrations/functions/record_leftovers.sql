-- Writes down what became of a batch of leftovers: p_results is a JSON array of report_id, fence_epoch, fence_counter, object_id, error
-- (null: what was left is gone). One that failed stays noted, for the next scan.
-- Status: recorded, epoch_in_doubt, run_ended.
-- Locks: the barrier (shared), the run, the objects by key. No report: only the note changes.
CREATE OR REPLACE FUNCTION record_leftovers(p_run bigint, p_results jsonb) RETURNS TABLE (status text)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_now   timestamptz;
    v_noted text;
BEGIN
    SELECT e.status INTO status FROM enter_run(p_run) e;
    IF status IN ('epoch_in_doubt', 'run_ended') THEN -- paused or not: what is removed is removed
        RETURN NEXT;
        RETURN;
    END IF;
    PERFORM FROM object o
    JOIN jsonb_to_recordset(p_results) AS e (report_id text, fence_epoch integer, fence_counter bigint, object_id text)
        USING (report_id, fence_epoch, fence_counter, object_id)
    ORDER BY o.key
    FOR NO KEY UPDATE OF o;
    v_now := fenceline_now();

    -- A statement of its own, which sees what was committed while the rows were waited for.
    WITH answered AS MATERIALIZED (
        SELECT o AS object, o.report_id, o.fence_epoch, o.fence_counter, o.object_id, o.key, o.leftover_size AS size, e.error,
               CASE WHEN e.error IS NOT NULL THEN 'delete_failed' WHEN o.state = 'deleted' THEN 'deleted' ELSE 'aborted' END AS action
        FROM jsonb_to_recordset(p_results) AS e (report_id text, fence_epoch integer, fence_counter bigint, object_id text, error text)
        JOIN object o USING (report_id, fence_epoch, fence_counter, object_id)
        WHERE o.leftover_at IS NOT NULL
    ), written AS (
        UPDATE object o
        SET leftover_at = NULL, leftover_size = NULL, leftover_uploads = NULL,
            -- Its tombstone begins anew: a delete of another pass may be signed, and on its way.
            deleted_at = CASE WHEN o.state = 'deleted' THEN v_now ELSE o.deleted_at END
        FROM answered a
        WHERE (o.report_id, o.fence_epoch, o.fence_counter, o.object_id) = (a.report_id, a.fence_epoch, a.fence_counter, a.object_id)
          AND a.error IS NULL
    ), counted AS (
        UPDATE gc_run
        SET scan_returned = scan_returned + n.removed, deleted = deleted + n.gone, deleted_bytes = deleted_bytes + n.bytes,
            delete_failed = delete_failed + n.failed
        FROM (SELECT count(*) FILTER (WHERE error IS NULL) AS removed, count(error) AS failed,
                     count(*) FILTER (WHERE action = 'deleted') AS gone,
                     coalesce(sum(size) FILTER (WHERE action = 'deleted'), 0) AS bytes FROM answered) n
        WHERE run_id = p_run
    )
    SELECT note_batch(p_run, array_agg(object ORDER BY key), array_agg(action ORDER BY key), array_agg('returned'::text),
                      array_agg(size ORDER BY key), v_now, array_agg(error ORDER BY key))::text
    INTO v_noted
    FROM answered;

    status := 'recorded';
    RETURN NEXT;
END
$$;

REVOKE ALL ON FUNCTION record_leftovers FROM PUBLIC;
GRANT EXECUTE ON FUNCTION record_leftovers TO fenceline_service;
