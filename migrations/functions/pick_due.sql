-- Picks up to p_limit objects that seem to be due, in the order (eligible_at, key), after the one given: those that no brake holds back,
-- or with p_approved those that this run held back, if it was approved; not what a freeze keeps, however much it is. The caller looks again under their locks.
-- p_now is one reading of the clock, so that an index finds what is due by it.
CREATE OR REPLACE FUNCTION pick_due(p_limit integer, p_after_at timestamptz, p_after_key text, p_approved bigint, p_now timestamptz)
RETURNS object[]
LANGUAGE plpgsql STABLE
SET search_path = public, pg_temp
AS $$
BEGIN
    IF p_approved IS NULL THEN -- two queries, so that each has its index
        RETURN ARRAY(
            SELECT o
            FROM object o
            WHERE state IN ('reserved', 'sealed') AND eligible_at <= p_now AND held_back_run IS NULL
              AND (eligible_at, key) > (p_after_at, p_after_key) AND NOT is_frozen(report_id)
            ORDER BY eligible_at, key
            LIMIT p_limit);
    END IF;
    RETURN ARRAY(
        SELECT o
        FROM object o
        WHERE state IN ('reserved', 'sealed') AND eligible_at <= p_now
          AND held_back_run = (SELECT run_id FROM gc_run WHERE run_id = p_approved AND approved_at IS NOT NULL)
          AND (eligible_at, key) > (p_after_at, p_after_key)
        ORDER BY eligible_at, key
        LIMIT p_limit);
END
$$;

REVOKE ALL ON FUNCTION pick_due FROM PUBLIC;
