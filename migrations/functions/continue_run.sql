-- Shows that a pass still moves, and which phase it enters, with how much there is to do in it as far as that is known. False: it
-- was written off, and must stop.
-- Locks: the run alone, so that it shows its life also while an epoch begins.
CREATE OR REPLACE FUNCTION continue_run(p_run bigint, p_phase text, p_total bigint DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    v_now timestamptz := fenceline_now();
BEGIN
    IF p_phase IS NULL THEN
        UPDATE gc_run SET beat_at = v_now WHERE run_id = p_run AND finished_at IS NULL;
    ELSE
        UPDATE gc_run
        SET beat_at = v_now, phase = p_phase, phase_began_at = v_now, phase_done = 0, phase_total = p_total
        WHERE run_id = p_run AND finished_at IS NULL;
    END IF;
    RETURN FOUND;
END
$$;

REVOKE ALL ON FUNCTION continue_run FROM PUBLIC;
GRANT EXECUTE ON FUNCTION continue_run TO fenceline_service;
