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
    v_now timestamptz;
    b     record;
BEGIN
    SELECT e.status INTO status FROM enter_run(p_run) e;
    IF status IN ('epoch_in_doubt', 'run_ended') THEN -- paused or not: what is removed is removed
        RETURN NEXT;
        RETURN;
    END IF;
    v_now := fenceline_now();
    PERFORM FROM object o
    JOIN jsonb_to_recordset(p_results) AS e (report_id text, fence_epoch integer, fence_counter bigint, object_id text)
        USING (report_id, fence_epoch, fence_counter, object_id)
    ORDER BY o.key
    FOR NO KEY UPDATE OF o;

    INSERT INTO gc_ledger (run_id, at, action, reason, detail, report_id, fence_epoch, fence_counter, object_id, key, size)
    SELECT p_run, v_now,
           CASE WHEN e.error IS NOT NULL THEN 'delete_failed' WHEN o.state = 'deleted' THEN 'deleted' ELSE 'aborted' END, 'returned',
           e.error, o.report_id, o.fence_epoch, o.fence_counter, o.object_id, o.key, o.leftover_size
    FROM jsonb_to_recordset(p_results) AS e (report_id text, fence_epoch integer, fence_counter bigint, object_id text, error text)
    JOIN object o USING (report_id, fence_epoch, fence_counter, object_id)
    WHERE o.leftover_at IS NOT NULL
    ORDER BY o.key;

    SELECT count(*) FILTER (WHERE e.error IS NULL) AS gone,
           count(*) FILTER (WHERE e.error IS NULL AND o.state = 'deleted') AS deleted,
           coalesce(sum(o.leftover_size) FILTER (WHERE e.error IS NULL AND o.state = 'deleted'), 0) AS bytes,
           count(*) FILTER (WHERE e.error IS NOT NULL) AS failed
    INTO b
    FROM jsonb_to_recordset(p_results) AS e (report_id text, fence_epoch integer, fence_counter bigint, object_id text, error text)
    JOIN object o USING (report_id, fence_epoch, fence_counter, object_id)
    WHERE o.leftover_at IS NOT NULL;
    UPDATE gc_run
    SET scan_returned = scan_returned + b.gone, deleted = deleted + b.deleted, deleted_bytes = deleted_bytes + b.bytes,
        delete_failed = delete_failed + b.failed
    WHERE run_id = p_run;
    PERFORM tally(p_run,
                  array_agg(CASE WHEN e.error IS NOT NULL THEN 'delete_failed' WHEN o.state = 'deleted' THEN 'deleted' ELSE 'aborted' END),
                  array_agg('returned'::text), array_agg(o.leftover_size))
    FROM jsonb_to_recordset(p_results) AS e (report_id text, fence_epoch integer, fence_counter bigint, object_id text, error text)
    JOIN object o USING (report_id, fence_epoch, fence_counter, object_id)
    WHERE o.leftover_at IS NOT NULL;

    UPDATE object o
    SET leftover_at = NULL, leftover_size = NULL, leftover_uploads = NULL
    FROM jsonb_to_recordset(p_results) AS e (report_id text, fence_epoch integer, fence_counter bigint, object_id text, error text)
    WHERE (o.report_id, o.fence_epoch, o.fence_counter, o.object_id) = (e.report_id, e.fence_epoch, e.fence_counter, e.object_id)
      AND e.error IS NULL;
    status := 'recorded';
    RETURN NEXT;
END
$$;

REVOKE ALL ON FUNCTION record_leftovers FROM PUBLIC;
GRANT EXECUTE ON FUNCTION record_leftovers TO fenceline_service;
