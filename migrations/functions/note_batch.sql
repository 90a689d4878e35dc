-- Writes down what a pass did with a batch of objects, or in a dry run would have done, each with its action (NULL or skipped:
-- nothing), its reason, its size, and what the storage said of it, if that is asked at all. The caller holds the run's row.
CREATE OR REPLACE FUNCTION note_batch(p_run bigint, p_objects object[], p_actions text[], p_reasons text[], p_sizes bigint[],
    p_now timestamptz, p_details text[] DEFAULT NULL) RETURNS void
LANGUAGE sql
SET search_path = public, pg_temp
AS $$
    INSERT INTO gc_ledger (run_id, at, action, reason, detail, report_id, fence_epoch, fence_counter, object_id, key, size)
    SELECT p_run, p_now, v.action, v.reason, v.detail, u.report_id, u.fence_epoch, u.fence_counter, u.object_id, u.key, v.size
    FROM unnest(p_objects) WITH ORDINALITY u
    JOIN unnest(p_actions, p_reasons, p_sizes, p_details) WITH ORDINALITY v (action, reason, size, detail, ordinality) USING (ordinality)
    WHERE v.action <> 'skipped'
    ORDER BY ordinality;

    SELECT tally(p_run, p_actions, p_reasons, p_sizes);
$$;

REVOKE ALL ON FUNCTION note_batch FROM PUBLIC;
