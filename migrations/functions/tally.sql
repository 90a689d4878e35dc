-- Counts one batch of a pass by what was done and why: an action, a reason and a size (NULL: not known) for each object, in
-- three arrays of one length. Where the action is NULL, or skipped, nothing was done. The caller holds the run's row.
CREATE OR REPLACE FUNCTION tally(p_run bigint, p_actions text[], p_reasons text[], p_sizes bigint[]) RETURNS void
LANGUAGE sql
SET search_path = public, pg_temp
AS $$
    INSERT INTO gc_tally AS t (run_id, action, reason, objects, bytes)
    SELECT p_run, action, reason, count(*), coalesce(sum(size), 0)
    FROM unnest(p_actions, p_reasons, p_sizes) AS done (action, reason, size)
    WHERE action <> 'skipped'
    GROUP BY action, reason
    ON CONFLICT (run_id, action, reason)
        DO UPDATE SET objects = t.objects + excluded.objects, bytes = t.bytes + excluded.bytes
$$;

REVOKE ALL ON FUNCTION tally FROM PUBLIC;
