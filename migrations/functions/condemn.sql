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
    v_candidates object[];
    v_locked     text[];
    v_now        timestamptz;
    v_run        gc_run%ROWTYPE;
    v_until      timestamptz[]; -- of each candidate that is not due, from when it may be
    c            record;
    v_counts     boolean;
    -- what became of each candidate
    v_status     text[];
    v_reason     text[];
    v_size       bigint[];
BEGIN
    SELECT e.status, e.floor_epoch, e.dry_run INTO status, v_floor, v_dry FROM enter_run(p_run) e;
    IF status IS NOT NULL THEN
        RETURN NEXT;
        RETURN;
    END IF;

    v_now := fenceline_now(); -- once, so that an index finds what is due by it
    IF p_approved IS NULL THEN
        SELECT array_agg(due) INTO v_candidates
        FROM (
            SELECT o
            FROM object o
            WHERE state IN ('reserved', 'sealed') AND eligible_at <= v_now AND held_back_run IS NULL
              AND (eligible_at, key) > (p_after_at, p_after_key)
            ORDER BY eligible_at, key
            LIMIT p_limit
        ) d (due);
    ELSE
        SELECT array_agg(due) INTO v_candidates
        FROM (
            SELECT o
            FROM object o
            WHERE state IN ('reserved', 'sealed') AND eligible_at <= v_now
              AND held_back_run = (SELECT run_id FROM gc_run WHERE run_id = p_approved AND approved_at IS NOT NULL)
              AND (eligible_at, key) > (p_after_at, p_after_key)
            ORDER BY eligible_at, key
            LIMIT p_limit
        ) d (due);
    END IF;

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
    SELECT * INTO v_run FROM gc_run WHERE run_id = p_run;

    FOR c IN
        SELECT u.ordinality AS n, coalesce(o.size, o.declared_size) AS size, j.verdict, j.reason, j.until,
               -- what changed hands while it was picked is left to the next batch that picks it
               coalesce(o.key = ANY (v_locked), false) AND o.held_back_run IS NOT DISTINCT FROM u.held_back_run AS held
        FROM unnest(v_candidates) WITH ORDINALITY u
        JOIN object o USING (report_id, fence_epoch, fence_counter, object_id)
        JOIN report r USING (report_id)
        CROSS JOIN LATERAL judge_object(o, r, v_floor, v_now) j
        ORDER BY u.ordinality
    LOOP
        v_run.phase_done := v_run.phase_done + 1;
        v_size[c.n] := c.size;
        v_status[c.n] := 'skipped';
        v_reason[c.n] := NULL; -- said for each, so that no array begins in the middle
        v_until[c.n] := NULL;
        CONTINUE WHEN NOT c.held;
        IF c.verdict = 'due' THEN
            v_reason[c.n] := c.reason;
            -- What was superseded in the normal way does not count for the brake, nor what an operator has looked at.
            v_counts := c.reason <> 'superseded' AND p_approved IS NULL;
            IF NOT v_counts OR v_run.brake_released OR v_run.brake_used_objects < v_run.brake_min
               OR v_run.brake_used_objects < v_run.brake_objects
                  AND v_run.brake_used_bytes + coalesce(c.size, 0) <= v_run.brake_bytes THEN
                v_status[c.n] := 'condemned';
                v_run.condemned := v_run.condemned + 1;
                v_run.condemned_bytes := v_run.condemned_bytes + coalesce(c.size, 0);
                v_run.brake_used_objects := v_run.brake_used_objects + v_counts::integer;
                v_run.brake_used_bytes := v_run.brake_used_bytes + v_counts::integer * coalesce(c.size, 0);
            ELSE
                v_status[c.n] := 'braked';
                v_run.braked := v_run.braked + 1;
                v_run.braked_bytes := v_run.braked_bytes + coalesce(c.size, 0);
            END IF;
        ELSIF c.verdict = 'put_off' THEN
            v_status[c.n] := 'put_off';
            v_reason[c.n] := c.reason;
            v_until[c.n] := c.until;
            v_run.put_off := v_run.put_off + 1;
        ELSIF c.verdict = 'kept' AND c.until > v_now THEN
            v_until[c.n] := c.until; -- the setting has become longer since the time was noted
        END IF;
    END LOOP;

    IF NOT v_dry THEN
        PERFORM condemn_objects(v_candidates, ARRAY(
            SELECT CASE v.status WHEN 'condemned' THEN v.reason END
            FROM unnest(v_status, v_reason) WITH ORDINALITY v (status, reason, n)
            ORDER BY n), p_grace_ms, v_now);
        UPDATE object o
        SET eligible_at = coalesce(v.until, o.eligible_at),
            held_back_run = CASE v.status WHEN 'braked' THEN p_run ELSE o.held_back_run END
        FROM unnest(v_candidates) WITH ORDINALITY u
        JOIN unnest(v_status, v_until) WITH ORDINALITY v (status, until, ordinality) USING (ordinality)
        WHERE (o.report_id, o.fence_epoch, o.fence_counter, o.object_id) = (u.report_id, u.fence_epoch, u.fence_counter, u.object_id)
          AND (v.until IS NOT NULL OR v.status = 'braked');
    END IF;
    PERFORM note_batch(p_run, v_candidates, v_status, v_reason, v_size, v_now);
    UPDATE gc_run
    SET phase_done = v_run.phase_done, condemned = v_run.condemned, condemned_bytes = v_run.condemned_bytes,
        put_off = v_run.put_off, braked = v_run.braked, braked_bytes = v_run.braked_bytes,
        brake_used_objects = v_run.brake_used_objects, brake_used_bytes = v_run.brake_used_bytes
    WHERE run_id = p_run;

    RETURN QUERY
    SELECT v.status, v.reason, u.report_id, u.fence_epoch, u.fence_counter, u.object_id, u.key, v.size, u.eligible_at
    FROM unnest(v_candidates) WITH ORDINALITY u
    JOIN unnest(v_status, v_reason, v_size) WITH ORDINALITY v (status, reason, size, ordinality) USING (ordinality)
    ORDER BY ordinality;
END
$$;

REVOKE ALL ON FUNCTION condemn FROM PUBLIC;
GRANT EXECUTE ON FUNCTION condemn TO fenceline_service;
