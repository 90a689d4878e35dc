-- Records keys that a listing showed and the rows did not: p_keys is a JSON array of report_id, fence_epoch, fence_counter,
-- object_id, key, size. Each is looked up once more under its report's lock, since a worker may have reserved it in between; what is
-- still unknown becomes an object that nobody can publish, due after p_retention_ms, and its report is created where there is
-- none. Answers a row for each that was recorded. A dry run writes down and counts the same, and records nothing.
-- Status: found; alone in the first row: epoch_in_doubt, run_ended, paused.
-- Locks: the barrier (shared); the run; the reports by id, FOR SHARE, which holds every reserve of theirs off: a later statement then
-- sees what was reserved before, and whoever reserves afterwards finds the row. The objects are new, and inserted by key.
CREATE OR REPLACE FUNCTION record_found(p_run bigint, p_prefix text, p_keys jsonb, p_retention_ms bigint)
RETURNS TABLE (status text, report_id text, fence_epoch integer, fence_counter bigint, object_id text, key text, size bigint)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_dry     boolean;
    v_now     timestamptz;
    v_unknown object[];
BEGIN
    SELECT e.status, e.dry_run INTO status, v_dry FROM enter_run(p_run) e;
    IF status IS NOT NULL THEN
        RETURN NEXT;
        RETURN;
    END IF;
    IF NOT v_dry THEN
        INSERT INTO report (report_id, created_at)
        SELECT DISTINCT k ->> 'report_id', fenceline_now()
        FROM jsonb_array_elements(p_keys) k
        ORDER BY 1
        ON CONFLICT DO NOTHING;
    END IF;
    PERFORM FROM report
    WHERE report_id IN (SELECT k ->> 'report_id' FROM jsonb_array_elements(p_keys) k)
    ORDER BY report_id
    FOR SHARE;
    v_now := fenceline_now();

    SELECT array_agg(k ORDER BY k.key) INTO v_unknown
    FROM jsonb_populate_recordset(NULL::object, p_keys) k
    WHERE NOT EXISTS (
        SELECT FROM object o
        WHERE (o.report_id, o.fence_epoch, o.fence_counter, o.object_id) = (k.report_id, k.fence_epoch, k.fence_counter, k.object_id));
    IF NOT v_dry THEN
        INSERT INTO object (report_id, fence_epoch, fence_counter, object_id, prefix, state, declared_size,
                            reserved_at, upload_until, eligible_at, found_at, found_retention_ms)
        SELECT report_id, fence_epoch, fence_counter, object_id, p_prefix, 'reserved', size,
               v_now, v_now, v_now + p_retention_ms * interval '1 millisecond', v_now, p_retention_ms
        FROM unnest(v_unknown);
    END IF;

    UPDATE gc_run SET scan_unknown = scan_unknown + coalesce(cardinality(v_unknown), 0) WHERE run_id = p_run;
    PERFORM note_batch(p_run, v_unknown, array_agg('found'::text), array_agg('unknown'::text), array_agg(size), v_now)
    FROM unnest(v_unknown);

    RETURN QUERY
    SELECT 'found', report_id, fence_epoch, fence_counter, object_id, key, size
    FROM unnest(v_unknown);
END
$$;

REVOKE ALL ON FUNCTION record_found FROM PUBLIC;
GRANT EXECUTE ON FUNCTION record_found TO fenceline_service;
