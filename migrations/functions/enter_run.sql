-- The door of every step of a pass: the barrier and the identity as in enter(), then the run's own row,
-- so that a pass that was written off while it was paused does nothing more.
-- Status: NULL (go on), paused, epoch_in_doubt, run_ended.
CREATE OR REPLACE FUNCTION enter_run(p_run bigint, OUT status text, OUT floor_epoch integer, OUT dry_run boolean)
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_epoch integer;
BEGIN
    SELECT epoch, floor_epoch INTO v_epoch, floor_epoch FROM enter();
    IF v_epoch IS NULL THEN
        status := 'epoch_in_doubt';
        RETURN;
    END IF;
    UPDATE gc_run SET beat_at = fenceline_now()
    WHERE run_id = p_run AND finished_at IS NULL
    RETURNING dry_run INTO dry_run;
    IF NOT FOUND THEN
        status := 'run_ended';
    ELSIF NOT dry_run AND EXISTS (SELECT FROM gc_pause) THEN
        status := 'paused';
    END IF;
END
$$;

REVOKE ALL ON FUNCTION enter_run FROM PUBLIC;
