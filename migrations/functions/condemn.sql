-- One batch of the mark: takes up to p_limit candidates in the order (eligible_at, key), after the one
-- given, and condemns those that are still due. Answers a row for each candidate with what became of it:
-- condemned, put_off, braked, or skipped (locked by another, or not due any more).
-- In a dry run nothing but the run's record and its ledger is written.
-- Status, alone in the first row: epoch_in_doubt, run_ended, paused.
-- Locks: the barrier (shared); the run; the candidates' reports FOR SHARE by id, which holds every publish of
-- them off; the candidates FOR UPDATE by key. Only a later statement judges them: one statement that
-- marks what nothing refers to would condemn what has just been published.
CREATE OR REPLACE FUNCTION condemn(p_run bigint, p_limit integer, p_after_at timestamptz, p_after_key text, p_grace_ms bigint)
RETURNS TABLE (status text, reason text, report_id text, fence_epoch integer, fence_counter bigint, object_id text,
               key text, size bigint, due_at timestamptz)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_floor      integer;
    v_dry        boolean;
    v_candidates object[];
    v_locked     text[];
    v_now        timestamptz;
    c            record;
BEGIN
    SELECT e.status, e.floor_epoch, e.dry_run INTO status, v_floor, v_dry FROM enter_run(p_run) e;
    IF status IS NOT NULL THEN
        RETURN NEXT;
        RETURN;
    END IF;

    SELECT array_agg(due) INTO v_candidates
    FROM (
        SELECT o
        FROM object o
        WHERE state IN ('reserved', 'sealed') AND eligible_at <= fenceline_now()
          AND (eligible_at, key) > (p_after_at, p_after_key)
        ORDER BY eligible_at, key
        LIMIT p_limit
    ) d (due);

    PERFORM FROM report
    WHERE report_id IN (SELECT report_id FROM unnest(v_candidates))
    ORDER BY report_id
    FOR SHARE;

    SELECT array_agg(key) INTO v_locked
    FROM (
        SELECT o.key
        FROM object o
        JOIN unnest(v_candidates) u USING (report_id, fence_epoch, fence_counter, object_id)
        ORDER BY o.key
        FOR UPDATE OF o SKIP LOCKED
    ) l;
    v_now := fenceline_now();

    FOR c IN
        SELECT o, r, u.eligible_at AS due_at
        FROM unnest(v_candidates) u
        JOIN object o USING (report_id, fence_epoch, fence_counter, object_id)
        JOIN report r USING (report_id)
        ORDER BY u.eligible_at, u.key
    LOOP
        reason := NULL;
        status := 'skipped';
        IF (c.o).key = ANY (v_locked) THEN
            SELECT k.status, k.reason INTO status, reason
            FROM condemn_one(p_run, v_dry, c.o, c.r, v_floor, p_grace_ms, v_now) k;
        END IF;
        report_id := (c.o).report_id;
        fence_epoch := (c.o).fence_epoch;
        fence_counter := (c.o).fence_counter;
        object_id := (c.o).object_id;
        key := (c.o).key;
        size := coalesce((c.o).size, (c.o).declared_size);
        due_at := c.due_at;
        RETURN NEXT;
    END LOOP;
END
$$;

REVOKE ALL ON FUNCTION condemn FROM PUBLIC;
GRANT EXECUTE ON FUNCTION condemn TO fenceline_service;
