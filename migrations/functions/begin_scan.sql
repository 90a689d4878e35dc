-- Takes up the scan that is under way, where it stands and with what it has counted, or begins one. A dry run begins one
-- of its own, which nobody takes up.
-- Status: NULL (with the part and the key after which it goes on), epoch_in_doubt, run_ended, paused.
-- Locks: the barrier (shared), the run, then the scan's own row. The run's is enough: at most one run is under way.
CREATE OR REPLACE FUNCTION begin_scan(p_run bigint) RETURNS TABLE (status text, part text, after_key bytea)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_dry boolean;
    s     gc_scan%ROWTYPE;
BEGIN
    SELECT e.status, e.dry_run INTO status, v_dry FROM enter_run(p_run) e;
    IF status IS NOT NULL THEN
        RETURN NEXT;
        RETURN;
    END IF;
    SELECT * INTO s FROM gc_scan;
    IF v_dry OR s.began_at IS NULL THEN
        s := ROW (true, fenceline_now(), NULL, 'objects', '', s.completed_at);
    END IF;

    UPDATE gc_run g
    SET scan_keys = coalesce(b.scan_keys, 0), scan_unknown = coalesce(b.scan_unknown, 0), scan_returned = coalesce(b.scan_returned, 0),
        scan_foreign_objects = coalesce(b.scan_foreign_objects, 0), scan_foreign_bytes = coalesce(b.scan_foreign_bytes, 0),
        scan_foreign_sample = coalesce(b.scan_foreign_sample, '{}'), scan_completed = false
    FROM (SELECT s.run_id) before
    LEFT JOIN gc_run b USING (run_id)
    WHERE g.run_id = p_run;
    IF NOT v_dry THEN
        UPDATE gc_scan SET began_at = s.began_at, run_id = p_run, part = s.part, after_key = s.after_key;
    END IF;
    part := s.part;
    after_key := s.after_key;
    RETURN NEXT;
END
$$;

REVOKE ALL ON FUNCTION begin_scan FROM PUBLIC;
GRANT EXECUTE ON FUNCTION begin_scan TO fenceline_service;
