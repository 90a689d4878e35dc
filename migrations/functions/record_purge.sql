-- Writes down what the storage answered to a batch of deletes. p_results is a JSON array of report_id,
-- fence_epoch, fence_counter, object_id, error (null: the bytes are gone). A delete that failed is tried
-- again after a pause that doubles each time, up to six hours; from when the bytes may go (purge_after) stays as it was.
-- An object in parts is gone only once its unfinished uploads are aborted as well: whoever does not do that
-- (p_aborts) cannot mark it as deleted.
-- Status: recorded, epoch_in_doubt, run_ended.
-- Locks: the barrier (shared), the run, the objects by key. No report: what is condemned stays condemned.
CREATE OR REPLACE FUNCTION record_purge(p_run bigint, p_results jsonb, p_aborts boolean DEFAULT false)
RETURNS TABLE (status text)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_dry   boolean;
    v_now   timestamptz;
    v_noted text;
BEGIN
    SELECT e.status, e.dry_run INTO status, v_dry FROM enter_run(p_run) e;
    IF status IN ('epoch_in_doubt', 'run_ended') THEN -- paused or not: what is deleted is deleted
        RETURN NEXT;
        RETURN;
    END IF;
    PERFORM FROM jsonb_to_recordset(p_results) AS e (report_id text, fence_epoch integer, fence_counter bigint, object_id text)
    JOIN object o USING (report_id, fence_epoch, fence_counter, object_id)
    ORDER BY o.key
    FOR NO KEY UPDATE OF o;
    v_now := fenceline_now();

    -- A statement of its own, which sees what was committed while the rows were waited for.
    WITH answered AS MATERIALIZED (
        SELECT o AS object, o.report_id, o.fence_epoch, o.fence_counter, o.object_id, o.key, o.condemned_reason,
               coalesce(o.size, o.declared_size) AS size,
               coalesce(e.error, CASE WHEN o.part_size IS NOT NULL AND NOT p_aborts
                                      THEN 'this release of the collector does not abort unfinished uploads' END) AS error
        FROM jsonb_to_recordset(p_results) AS e (report_id text, fence_epoch integer, fence_counter bigint, object_id text, error text)
        JOIN object o USING (report_id, fence_epoch, fence_counter, object_id)
        WHERE o.state = 'condemned'
    ), written AS (
        UPDATE object o
        SET state = CASE WHEN a.error IS NULL THEN 'deleted' ELSE o.state END,
            deleted_at = CASE WHEN a.error IS NULL THEN v_now END,
            purge_attempts = o.purge_attempts + 1,
            purge_error = a.error,
            retry_at = CASE WHEN a.error IS NOT NULL
                            THEN v_now + least(interval '6 hours', interval '1 minute' * power(2, least(o.purge_attempts, 20))) END
        FROM answered a
        WHERE (o.report_id, o.fence_epoch, o.fence_counter, o.object_id) = (a.report_id, a.fence_epoch, a.fence_counter, a.object_id)
          AND NOT v_dry
    ), counted AS (
        UPDATE gc_run
        SET deleted = deleted + n.gone, deleted_bytes = deleted_bytes + n.bytes, delete_failed = delete_failed + n.failed,
            phase_done = phase_done + n.gone + n.failed
        FROM (SELECT count(*) FILTER (WHERE error IS NULL) AS gone, count(error) AS failed,
                     coalesce(sum(size) FILTER (WHERE error IS NULL), 0) AS bytes FROM answered) n
        WHERE run_id = p_run
    )
    SELECT note_batch(p_run, array_agg(object ORDER BY key),
                      array_agg(CASE WHEN error IS NULL THEN 'deleted' ELSE 'delete_failed' END ORDER BY key),
                      array_agg(condemned_reason ORDER BY key), array_agg(size ORDER BY key), v_now, array_agg(error ORDER BY key))::text
    INTO v_noted
    FROM answered;

    status := 'recorded';
    RETURN NEXT;
END
$$;

REVOKE ALL ON FUNCTION record_purge FROM PUBLIC;
GRANT EXECUTE ON FUNCTION record_purge TO fenceline_service;
