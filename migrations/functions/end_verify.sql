-- Ends a run: completed, with which it has passed all that was left of its range; stopped or failed, and then it can be gone on
-- with. One that was written off, or gone on with by another, stays as it is.
-- Locks: the advisory lock of begin_verify, then the run.
CREATE OR REPLACE FUNCTION end_verify(p_run bigint, p_attempt integer, p_outcome text, p_error text)
RETURNS TABLE (status text)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz;
    r     verify_run%ROWTYPE;
BEGIN
    PERFORM pg_advisory_xact_lock(x'46454e43'::integer, 3);
    SELECT * INTO r FROM verify_run
    WHERE verification_id = p_run AND attempt = p_attempt AND finished_at IS NULL
    FOR UPDATE;
    IF NOT FOUND THEN
        RETURN QUERY SELECT 'run_ended';
        RETURN;
    END IF;
    v_now := fenceline_now();
    IF p_outcome = 'completed' THEN
        PERFORM end_findings(r, NULL, NULL, NULL, NULL);
    END IF;
    UPDATE verify_run
    SET finished_at = v_now, beat_at = v_now, outcome = p_outcome, error = p_error
    WHERE verification_id = p_run;
    RETURN QUERY SELECT 'ended';
END
$$;

REVOKE ALL ON FUNCTION end_verify FROM PUBLIC;
GRANT EXECUTE ON FUNCTION end_verify TO fenceline_service;
