-- One batch of the mark: takes up to p_limit candidates in the order (eligible_at, key), after the one
-- given, and condemns those that are still due, as far as the brake lets it. The candidates are those that no brake holds
-- back, or with p_approved those that this run held back, which was approved: of them the brake lets all go. Answers a row
-- for each candidate with what became of it: condemned, put_off, braked, or skipped (locked by another, or not due any more).
-- In a dry run nothing but the run's record and its ledger is written.
-- Status, alone in the first row: epoch_in_doubt, run_ended, paused.
-- Locks: the barrier (shared); the run; the candidates' reports FOR SHARE by id, which holds every publish of
-- them off; the candidates FOR UPDATE by key. Only a later statement judges them: one statement that
-- marks what nothing refers to would condemn what has just been published.
CREATE OR REPLACE FUNCTION condemn(p_run bigint, p_limit integer, p_after_at timestamptz, p_after_key text, p_grace_ms bigint,
    p_approved bigint DEFAULT NULL)
RETURNS TABLE (status text, reason text, report_id text, fence_epoch integer, fence_counter bigint, object_id text,
               key text, size bigint, due_at timestamptz)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_floor      integer;
    v_dry        boolean;
    v_now        timestamptz;
    v_candidates object[];
    v_locked     text[];
    v_run        gc_run%ROWTYPE;
    v_judged     record;
BEGIN
    SELECT e.status, e.floor_epoch, e.dry_run INTO status, v_floor, v_dry FROM enter_run(p_run) e;
    IF status IS NOT NULL THEN
        RETURN NEXT;
        RETURN;
    END IF;
    v_candidates := pick_due(p_limit, p_after_at, p_after_key, p_approved, fenceline_now());
    v_locked := lock_due(v_candidates);
    v_now := fenceline_now();
    SELECT * INTO v_run FROM gc_run WHERE run_id = p_run;
    v_judged := judge_due(v_candidates, v_locked, v_floor, p_approved IS NOT NULL, v_now, v_run);
    v_run := v_judged.p_run;
    IF NOT v_dry THEN
        PERFORM settle_due(p_run, v_candidates, v_judged.statuses, v_judged.reasons, v_judged.untils, p_grace_ms, v_now);
    END IF;
    PERFORM note_batch(p_run, v_candidates, v_judged.statuses, v_judged.reasons, v_judged.sizes, v_now);
    UPDATE gc_run
    SET phase_done = v_run.phase_done, condemned = v_run.condemned, condemned_bytes = v_run.condemned_bytes,
        put_off = v_run.put_off, braked = v_run.braked, braked_bytes = v_run.braked_bytes,
        brake_used_objects = v_run.brake_used_objects, brake_used_bytes = v_run.brake_used_bytes
    WHERE run_id = p_run;

    RETURN QUERY
    SELECT v.status, v.reason, u.report_id, u.fence_epoch, u.fence_counter, u.object_id, u.key, v.size, u.eligible_at
    FROM unnest(v_candidates) WITH ORDINALITY u
    JOIN unnest(v_judged.statuses, v_judged.reasons, v_judged.sizes) WITH ORDINALITY v (status, reason, size, ordinality) USING (ordinality)
    ORDER BY ordinality;
END
$$;

REVOKE ALL ON FUNCTION condemn FROM PUBLIC;
GRANT EXECUTE ON FUNCTION condemn TO fenceline_service;
