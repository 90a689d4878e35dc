-- Writes down what a pass did with one object, or in a dry run would have done, and why.
CREATE OR REPLACE FUNCTION note_in_ledger(p_run bigint, o object, p_action text, p_reason text, p_detail text, p_now timestamptz) RETURNS void
LANGUAGE sql
SET search_path = public, pg_temp
AS $$
    INSERT INTO gc_ledger (run_id, at, action, reason, detail, report_id, fence_epoch, fence_counter, object_id, key, size)
    VALUES (p_run, p_now, p_action, p_reason, p_detail, o.report_id, o.fence_epoch, o.fence_counter, o.object_id, o.key,
            coalesce(o.size, o.declared_size))
$$;

REVOKE ALL ON FUNCTION note_in_ledger FROM PUBLIC;
