-- Forgets the records of passes that ended until p_before, and up to p_limit entries of their ledgers, but for those that still hold
-- something back. Answers how many entries. The caller's own run has begun since. Locks: only rows that are final.
CREATE OR REPLACE FUNCTION forget_runs(p_limit integer, p_before timestamptz) RETURNS bigint
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
DECLARE
    v_holds bigint[] := ARRAY(
        SELECT g.run_id
        FROM gc_run g
        WHERE g.braked > 0 AND NOT g.dry_run AND EXISTS (
            SELECT FROM object WHERE held_back_run = g.run_id AND state IN ('reserved', 'sealed')));
    v_count bigint;
BEGIN
    DELETE FROM gc_ledger
    WHERE (run_id, entry) IN (
        SELECT run_id, entry
        FROM gc_ledger
        WHERE run_id < (SELECT min(run_id) FROM gc_run WHERE started_at > p_before)
          AND run_id <> ALL (v_holds)
        ORDER BY run_id, entry
        LIMIT p_limit
    );
    GET DIAGNOSTICS v_count = ROW_COUNT;
    DELETE FROM gc_run WHERE finished_at <= p_before AND run_id <> ALL (v_holds);
    RETURN v_count;
END
$$;

REVOKE ALL ON FUNCTION forget_runs FROM PUBLIC;
