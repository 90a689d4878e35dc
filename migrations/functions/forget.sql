-- Removes up to p_limit rows of each kind that nothing can refer to any more: tombstones of deleted objects,
-- records of ended leases, old refusals, records of old passes, but for those that still hold something back. The report keeps
-- its fences, so the next fence is greater than those of the forgotten. A dry run writes down and counts the same at once, and removes nothing.
-- Status: forgotten (with how many in all, and whether there may be more), epoch_in_doubt, run_ended, paused.
-- Locks: the barrier (shared), the run; then only rows that are final, and refusals, which are looked at once more.
CREATE OR REPLACE FUNCTION forget(p_run bigint, p_limit integer, p_tombstone_ms bigint, p_lease_ms bigint, p_refusal_ms bigint)
RETURNS TABLE (status text, forgotten bigint, more boolean)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_dry    boolean;
    v_now    timestamptz;
    v_before timestamptz;
    v_counts bigint[];
BEGIN
    SELECT e.status, e.dry_run INTO status, v_dry FROM enter_run(p_run) e;
    IF status IS NOT NULL THEN
        RETURN NEXT;
        RETURN;
    END IF;
    v_now := fenceline_now();
    v_before := v_now - p_tombstone_ms * interval '1 millisecond';
    PERFORM set_config('fenceline.forgetting', CASE WHEN v_dry THEN 'off' ELSE 'on' END, true); -- the guards let nobody else delete
    v_counts := ARRAY[
        forget_objects(p_run, v_dry, p_limit, v_before, v_now),
        forget_leases(v_dry, p_limit, v_now - p_lease_ms * interval '1 millisecond'),
        forget_refusals(v_dry, p_limit, v_now - p_refusal_ms * interval '1 millisecond')];
    forgotten := (SELECT sum(n) FROM unnest(v_counts) n);
    more := false;
    IF NOT v_dry THEN
        more := p_limit = ANY (v_counts || forget_runs(p_limit, v_before)); -- what goes with an old pass is not counted
    END IF;
    UPDATE gc_run SET forgotten = forgotten + forget.forgotten, phase_done = phase_done + forget.forgotten WHERE run_id = p_run;
    PERFORM set_config('fenceline.forgetting', 'off', true);
    status := 'forgotten';
    RETURN NEXT;
END
$$;

REVOKE ALL ON FUNCTION forget FROM PUBLIC;
GRANT EXECUTE ON FUNCTION forget TO fenceline_service;
