-- Shows that a pass still moves, and in which phase it is. False: it was written off, and must stop.
-- Locks: the run alone, so that it shows its life also while an epoch begins.
CREATE OR REPLACE FUNCTION continue_run(p_run bigint, p_phase text) RETURNS boolean
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    UPDATE gc_run
    SET beat_at = fenceline_now(), phase = coalesce(p_phase, phase)
    WHERE run_id = p_run AND finished_at IS NULL;
    RETURN FOUND;
END
$$;

REVOKE ALL ON FUNCTION continue_run FROM PUBLIC;
GRANT EXECUTE ON FUNCTION continue_run TO fenceline_service;
