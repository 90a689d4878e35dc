-- Ends a pass, as completed, failed, paused, over its time limit (time_limit) or interrupted (stopped). One that was written off stays so.
-- Locks: the run alone.
CREATE OR REPLACE FUNCTION end_run(p_run bigint, p_outcome text, p_error text) RETURNS void
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    UPDATE gc_run
    SET finished_at = fenceline_now(), outcome = p_outcome, error = p_error,
        phase = CASE p_outcome WHEN 'completed' THEN 'done' ELSE phase END
    WHERE run_id = p_run AND finished_at IS NULL
$$;

REVOKE ALL ON FUNCTION end_run FROM PUBLIC;
GRANT EXECUTE ON FUNCTION end_run TO fenceline_service;
