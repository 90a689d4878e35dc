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
    v_dry     boolean;
    v_now     timestamptz;
    v_before  timestamptz;
    v_count   bigint;
    v_gone    object[]; -- with what is written down of each
    v_actions text[];
    v_reasons text[];
    v_sizes   bigint[];
    v_holds   bigint[];
BEGIN
    SELECT e.status, e.dry_run INTO status, v_dry FROM enter_run(p_run) e;
    IF status IS NOT NULL THEN
        RETURN NEXT;
        RETURN;
    END IF;
    v_now := fenceline_now();
    v_before := v_now - p_tombstone_ms * interval '1 millisecond';
    status := 'forgotten';
    more := false;
    IF v_dry THEN
        PERFORM note_in_ledger(p_run, d, 'forgotten', d.condemned_reason, NULL, v_now)
        FROM object d
        WHERE state = 'deleted' AND deleted_at <= v_before;
        GET DIAGNOSTICS forgotten = ROW_COUNT;
        INSERT INTO gc_tally (run_id, action, reason, objects, bytes)
        SELECT p_run, 'forgotten', condemned_reason, count(*), coalesce(sum(coalesce(size, declared_size)), 0)
        FROM object
        WHERE state = 'deleted' AND deleted_at <= v_before
        GROUP BY condemned_reason;
        forgotten := forgotten
            + (SELECT count(*) FROM lease WHERE ended_at <= v_now - p_lease_ms * interval '1 millisecond')
            + (SELECT count(*) FROM refusal WHERE last_at <= v_now - p_refusal_ms * interval '1 millisecond');
        UPDATE gc_run SET forgotten = forget.forgotten, phase_done = forget.forgotten WHERE run_id = p_run;
        RETURN NEXT;
        RETURN;
    END IF;
    PERFORM set_config('fenceline.forgetting', 'on', true); -- the guards let only this function delete

    WITH gone AS (
        DELETE FROM object
        WHERE (report_id, fence_epoch, fence_counter, object_id) IN (
            SELECT report_id, fence_epoch, fence_counter, object_id
            FROM object
            WHERE state = 'deleted' AND deleted_at <= v_before
            ORDER BY deleted_at
            LIMIT p_limit
        )
        RETURNING object
    )
    SELECT array_agg(object ORDER BY (object).key), array_agg('forgotten'::text),
           array_agg((object).condemned_reason ORDER BY (object).key),
           array_agg(coalesce((object).size, (object).declared_size) ORDER BY (object).key)
    INTO v_gone, v_actions, v_reasons, v_sizes
    FROM gone;
    PERFORM note_batch(p_run, v_gone, v_actions, v_reasons, v_sizes, v_now);
    forgotten := coalesce(cardinality(v_gone), 0);
    more := forgotten = p_limit;

    DELETE FROM lease
    WHERE (report_id, lease_id) IN (
        SELECT report_id, lease_id
        FROM lease
        WHERE ended_at <= v_now - p_lease_ms * interval '1 millisecond'
        ORDER BY ended_at
        LIMIT p_limit
    );
    GET DIAGNOSTICS v_count = ROW_COUNT;
    forgotten := forgotten + v_count;
    more := more OR v_count = p_limit;

    DELETE FROM refusal
    WHERE (report_id, code, presented_epoch, presented_counter, refused_to) IN (
        SELECT report_id, code, presented_epoch, presented_counter, refused_to
        FROM refusal
        WHERE last_at <= v_now - p_refusal_ms * interval '1 millisecond'
        ORDER BY last_at
        LIMIT p_limit
    )
      AND last_at <= v_now - p_refusal_ms * interval '1 millisecond'; -- it may have been refused again by now
    GET DIAGNOSTICS v_count = ROW_COUNT;
    forgotten := forgotten + v_count;
    more := more OR v_count = p_limit;

    v_holds := ARRAY(
        SELECT g.run_id
        FROM gc_run g
        WHERE g.braked > 0 AND NOT g.dry_run AND EXISTS (
            SELECT FROM object WHERE held_back_run = g.run_id AND state IN ('reserved', 'sealed')));
    DELETE FROM gc_ledger
    WHERE (run_id, entry) IN (
        SELECT run_id, entry
        FROM gc_ledger
        WHERE run_id < (SELECT min(run_id) FROM gc_run WHERE started_at > v_before) -- this pass at least has begun since
          AND run_id <> ALL (v_holds)
        ORDER BY run_id, entry
        LIMIT p_limit
    );
    GET DIAGNOSTICS v_count = ROW_COUNT;
    more := more OR v_count = p_limit;
    DELETE FROM gc_run WHERE finished_at <= v_before AND run_id <> ALL (v_holds);

    UPDATE gc_run SET forgotten = forgotten + forget.forgotten, phase_done = phase_done + forget.forgotten WHERE run_id = p_run;
    PERFORM set_config('fenceline.forgetting', 'off', true);
    RETURN NEXT;
END
$$;

REVOKE ALL ON FUNCTION forget FROM PUBLIC;
GRANT EXECUTE ON FUNCTION forget TO fenceline_service;
