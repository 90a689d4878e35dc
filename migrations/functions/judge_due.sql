-- Judges the candidates of a pass, in their order, and lets the brake decide about those that are due: answers what is to become of each
-- (condemned, put_off, braked, or skipped: not locked, or not due any more), for what reason, its size, and from when one that is
-- not due may be; and in p_run the run with all this counted. p_locked are the keys that the caller has locked, with their reports,
-- in an earlier statement. Writes nothing, and yet is not STABLE: it has to see what was committed while those were waited for.
CREATE OR REPLACE FUNCTION judge_due(p_candidates object[], p_locked text[], p_floor integer, p_approved boolean, p_now timestamptz,
    INOUT p_run gc_run, OUT statuses text[], OUT reasons text[], OUT sizes bigint[], OUT untils timestamptz[])
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
DECLARE
    c        record;
    v_counts boolean;
BEGIN
    FOR c IN
        SELECT u.ordinality AS n, coalesce(o.size, o.declared_size) AS size, j.verdict, j.reason, j.until,
               -- what changed hands while it was picked is left to the next batch that picks it
               coalesce(o.key = ANY (p_locked), false) AND o.held_back_run IS NOT DISTINCT FROM u.held_back_run AS held
        FROM unnest(p_candidates) WITH ORDINALITY u
        JOIN object o USING (report_id, fence_epoch, fence_counter, object_id)
        JOIN report r USING (report_id)
        CROSS JOIN LATERAL judge_object(o, r, p_floor, p_now) j
        ORDER BY u.ordinality
    LOOP
        p_run.phase_done := p_run.phase_done + 1;
        sizes[c.n] := c.size;
        statuses[c.n] := 'skipped';
        reasons[c.n] := NULL; -- said for each, so that no array begins in the middle
        untils[c.n] := NULL;
        CONTINUE WHEN NOT c.held;
        IF c.verdict = 'due' THEN
            reasons[c.n] := c.reason;
            -- What was superseded in the normal way does not count for the brake, nor what an operator has looked at.
            v_counts := c.reason <> 'superseded' AND NOT p_approved;
            IF NOT v_counts OR p_run.brake_released OR p_run.brake_used_objects < p_run.brake_min
               OR p_run.brake_used_objects < p_run.brake_objects
                  AND p_run.brake_used_bytes + coalesce(c.size, 0) <= p_run.brake_bytes THEN
                statuses[c.n] := 'condemned';
                p_run.condemned := p_run.condemned + 1;
                p_run.condemned_bytes := p_run.condemned_bytes + coalesce(c.size, 0);
                p_run.brake_used_objects := p_run.brake_used_objects + v_counts::integer;
                p_run.brake_used_bytes := p_run.brake_used_bytes + v_counts::integer * coalesce(c.size, 0);
            ELSE
                statuses[c.n] := 'braked';
                p_run.braked := p_run.braked + 1;
                p_run.braked_bytes := p_run.braked_bytes + coalesce(c.size, 0);
            END IF;
        ELSIF c.verdict = 'put_off' THEN
            statuses[c.n] := 'put_off';
            reasons[c.n] := c.reason;
            untils[c.n] := c.until;
            p_run.put_off := p_run.put_off + 1;
        ELSIF c.verdict = 'kept' AND c.until > p_now THEN
            untils[c.n] := c.until; -- the setting has become longer since the time was noted
        END IF;
    END LOOP;
END
$$;

REVOKE ALL ON FUNCTION judge_due FROM PUBLIC;
