-- Ends the findings about the objects that a run has passed, from where it stood up to the one named (NULL: to the end of its
-- range), unless they can only be seen to be over by a reading and the run reads nothing: then they end with the object, or
-- where the run itself has found something of it. The caller holds the lock of begin_verify.
CREATE OR REPLACE FUNCTION end_findings(r verify_run, p_report text, p_epoch integer, p_counter bigint, p_object text) RETURNS void
LANGUAGE sql
SET search_path = public, pg_temp
AS $$
    UPDATE verify_finding f
    SET present = false
    WHERE present
      AND (f.report_id, f.fence_epoch, f.fence_counter, f.object_id) > (r.at_report_id, r.at_epoch, r.at_counter, r.at_object_id)
      AND (p_report IS NULL OR (f.report_id, f.fence_epoch, f.fence_counter, f.object_id) <= (p_report, p_epoch, p_counter, p_object))
      AND (r.range_below = '' OR f.report_id < r.range_below)
      AND (r.deep OR NOT f.needs_deep
           OR NOT EXISTS (
               SELECT FROM object o
               WHERE (o.report_id, o.fence_epoch, o.fence_counter, o.object_id) = (f.report_id, f.fence_epoch, f.fence_counter, f.object_id)
                 AND o.state = 'sealed')
           OR EXISTS (
               SELECT FROM verify_finding anew
               WHERE (anew.verification_id, anew.report_id, anew.fence_epoch, anew.fence_counter, anew.object_id)
                   = (r.verification_id, f.report_id, f.fence_epoch, f.fence_counter, f.object_id)))
$$;

REVOKE ALL ON FUNCTION end_findings FROM PUBLIC;
