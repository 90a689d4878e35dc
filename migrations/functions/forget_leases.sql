-- Forgets up to p_limit records of leases that ended until p_before; a dry run removes none. Answers how many, or in a dry run how
-- many it would in all. The caller has announced to the guards that it forgets. Locks: only rows that are final.
CREATE OR REPLACE FUNCTION forget_leases(p_dry boolean, p_limit integer, p_before timestamptz) RETURNS bigint
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
DECLARE
    v_count bigint;
BEGIN
    IF p_dry THEN
        RETURN (SELECT count(*) FROM lease WHERE ended_at <= p_before);
    END IF;
    DELETE FROM lease
    WHERE (report_id, lease_id) IN (
        SELECT report_id, lease_id
        FROM lease
        WHERE ended_at <= p_before
        ORDER BY ended_at
        LIMIT p_limit
    );
    GET DIAGNOSTICS v_count = ROW_COUNT;
    RETURN v_count;
END
$$;

REVOKE ALL ON FUNCTION forget_leases FROM PUBLIC;
