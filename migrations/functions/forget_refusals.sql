-- Forgets up to p_limit refusals that were last repeated until p_before; a dry run removes none. Answers how many, or in a dry run how
-- many it would in all. The caller has announced to the guards that it forgets. Locks: the refusals, which are looked at once more.
CREATE OR REPLACE FUNCTION forget_refusals(p_dry boolean, p_limit integer, p_before timestamptz) RETURNS bigint
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
DECLARE
    v_count bigint;
BEGIN
    IF p_dry THEN
        RETURN (SELECT count(*) FROM refusal WHERE last_at <= p_before);
    END IF;
    DELETE FROM refusal
    WHERE (report_id, code, presented_epoch, presented_counter, refused_to) IN (
        SELECT report_id, code, presented_epoch, presented_counter, refused_to
        FROM refusal
        WHERE last_at <= p_before
        ORDER BY last_at
        LIMIT p_limit
    )
      AND last_at <= p_before; -- it may have been refused again by now
    GET DIAGNOSTICS v_count = ROW_COUNT;
    RETURN v_count;
END
$$;

REVOKE ALL ON FUNCTION forget_refusals FROM PUBLIC;
