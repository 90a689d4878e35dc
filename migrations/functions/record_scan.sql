-- Writes down how far a scan is, and what it has counted since it last said so. Its part is objects, uploads or leftovers; done: it was
-- whole; broken: what was listed is not to be relied on, and the next begins anew. A dry run's position is kept nowhere.
-- Status: recorded, epoch_in_doubt, run_ended, paused.
-- Locks: the barrier (shared), the run, then the scan's own row. The run's is enough: at most one run is under way.
CREATE OR REPLACE FUNCTION record_scan(p_run bigint, p_part text, p_after bytea, p_keys bigint,
    p_foreign_objects bigint, p_foreign_bytes bigint, p_foreign_sample text[])
RETURNS TABLE (status text)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_dry boolean;
    v_end boolean := p_part IN ('done', 'broken');
BEGIN
    SELECT e.status, e.dry_run INTO status, v_dry FROM enter_run(p_run) e;
    IF status IS NOT NULL THEN
        RETURN NEXT;
        RETURN;
    END IF;
    UPDATE gc_run
    SET scan_keys = scan_keys + p_keys,
        phase_done = phase_done + p_keys,
        scan_foreign_objects = scan_foreign_objects + p_foreign_objects,
        scan_foreign_bytes = scan_foreign_bytes + p_foreign_bytes,
        scan_foreign_sample = (scan_foreign_sample || p_foreign_sample)[1:10], -- enough to see whose they are
        scan_completed = p_part = 'done'
    WHERE run_id = p_run;
    IF NOT v_dry THEN
        UPDATE gc_scan
        SET part = CASE WHEN NOT v_end THEN p_part END,
            after_key = CASE WHEN NOT v_end THEN p_after END,
            began_at = CASE WHEN NOT v_end THEN began_at END,
            run_id = CASE WHEN NOT v_end THEN run_id END,
            completed_at = CASE p_part WHEN 'done' THEN fenceline_now() ELSE completed_at END;
    END IF;
    status := 'recorded';
    RETURN NEXT;
END
$$;

REVOKE ALL ON FUNCTION record_scan FROM PUBLIC;
GRANT EXECUTE ON FUNCTION record_scan TO fenceline_service;
