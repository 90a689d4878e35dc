-- Writes down what the storage answered to a batch of deletes. p_results is a JSON array of report_id,
-- fence_epoch, fence_counter, object_id, error (null: the bytes are gone). A delete that failed is tried
-- again after a pause that doubles each time, up to six hours.
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
    v_dry     boolean;
    v_now     timestamptz;
    v_deleted boolean;
    v_error   text;
    x         record;
BEGIN
    SELECT e.status, e.dry_run INTO status, v_dry FROM enter_run(p_run) e;
    IF status IN ('epoch_in_doubt', 'run_ended') THEN -- paused or not: what is deleted is deleted
        RETURN NEXT;
        RETURN;
    END IF;
    v_now := fenceline_now();

    FOR x IN
        SELECT o, e.error
        FROM jsonb_to_recordset(p_results) AS e (report_id text, fence_epoch integer, fence_counter bigint, object_id text, error text)
        JOIN object o USING (report_id, fence_epoch, fence_counter, object_id)
        WHERE o.state = 'condemned'
        ORDER BY o.key
        FOR NO KEY UPDATE OF o
    LOOP
        v_error := coalesce(x.error, CASE WHEN (x.o).part_size IS NOT NULL AND NOT p_aborts
                                          THEN 'this release of the collector does not abort unfinished uploads' END);
        v_deleted := v_error IS NULL;
        IF NOT v_dry THEN
            UPDATE object
            SET state = CASE WHEN v_deleted THEN 'deleted' ELSE state END,
                deleted_at = CASE WHEN v_deleted THEN v_now END,
                purge_attempts = purge_attempts + 1,
                purge_after = CASE WHEN v_deleted THEN purge_after
                                   ELSE v_now + least(interval '6 hours', interval '1 minute' * power(2, least(purge_attempts, 20))) END
            WHERE (report_id, fence_epoch, fence_counter, object_id)
                = ((x.o).report_id, (x.o).fence_epoch, (x.o).fence_counter, (x.o).object_id);
        END IF;
        UPDATE gc_run
        SET deleted = deleted + v_deleted::integer,
            deleted_bytes = deleted_bytes + v_deleted::integer * coalesce((x.o).size, (x.o).declared_size, 0),
            delete_failed = delete_failed + (NOT v_deleted)::integer
        WHERE run_id = p_run;
        PERFORM note_in_ledger(p_run, x.o, CASE WHEN v_deleted THEN 'deleted' ELSE 'delete_failed' END,
                               (x.o).condemned_reason, v_error, v_now);
    END LOOP;
    status := 'recorded';
    RETURN NEXT;
END
$$;

REVOKE ALL ON FUNCTION record_purge FROM PUBLIC;
GRANT EXECUTE ON FUNCTION record_purge TO fenceline_service;
