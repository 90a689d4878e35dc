-- Notes that something is in the bucket which the row says is not there: p_keys is a JSON array of report_id, fence_epoch, fence_counter,
-- object_id, key, size; bytes of what was deleted, or with p_uploads unfinished uploads of that or of what is sealed. What a scan notes
-- it removes once its listing was whole. A dry run notes nothing, and writes down and counts at once what it would remove (of uploads
-- under what is sealed: what was noted p_spared_ms ago). Answers a row for each of these.
-- Status: deleted, aborted; alone in the first row: epoch_in_doubt, run_ended, paused.
-- Locks: the barrier (shared), the run, the objects by key. No report: what is deleted stays deleted, and of what is sealed only
-- the note changes.
CREATE OR REPLACE FUNCTION note_leftovers(p_run bigint, p_uploads boolean, p_keys jsonb, p_spared_ms bigint)
RETURNS TABLE (status text, report_id text, fence_epoch integer, fence_counter bigint, object_id text, key text, size bigint)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_dry boolean;
BEGIN
    SELECT e.status, e.dry_run INTO status, v_dry FROM enter_run(p_run) e;
    IF status IS NOT NULL THEN
        RETURN NEXT;
        RETURN;
    END IF;
    IF v_dry THEN
        RETURN QUERY
        SELECT status, report_id, fence_epoch, fence_counter, object_id, key, size
        FROM would_remove(p_run, p_uploads, p_keys, p_spared_ms);
        RETURN;
    END IF;

    PERFORM FROM object o
    JOIN jsonb_populate_recordset(NULL::object, p_keys) k USING (report_id, fence_epoch, fence_counter, object_id)
    ORDER BY o.key
    FOR NO KEY UPDATE OF o;
    UPDATE object o
    SET leftover_at = coalesce(o.leftover_at, fenceline_now()), leftover_size = greatest(o.leftover_size, k.size),
        leftover_uploads = coalesce(o.leftover_uploads, false) OR p_uploads
    FROM jsonb_populate_recordset(NULL::object, p_keys) k
    WHERE (o.report_id, o.fence_epoch, o.fence_counter, o.object_id) = (k.report_id, k.fence_epoch, k.fence_counter, k.object_id)
      AND (o.state = 'deleted' OR p_uploads AND o.state = 'sealed');
END
$$;

REVOKE ALL ON FUNCTION note_leftovers FROM PUBLIC;
GRANT EXECUTE ON FUNCTION note_leftovers TO fenceline_service;
