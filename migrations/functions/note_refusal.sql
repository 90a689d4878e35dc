-- Keeps a refusal for its fence: who came with which, against which, and how often. Beyond a hundred fences of one key the latest
-- row counts for all further ones: whoever makes fences up must not fill the table. The caller holds the report's row.
CREATE OR REPLACE FUNCTION note_refusal(p_report text, p_code text, p_reason text, p_epoch integer, p_counter bigint,
    p_highest_epoch integer, p_highest_counter bigint, p_to text, p_now timestamptz) RETURNS void
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_to  text := coalesce(p_to, '');
    known refusal%ROWTYPE;
BEGIN
    SELECT * INTO known FROM refusal
    WHERE (report_id, code, presented_epoch, presented_counter, refused_to) = (p_report, p_code, p_epoch, p_counter, v_to);
    IF known.report_id IS NULL AND 100 <= (
        SELECT count(*) FROM (SELECT FROM refusal WHERE report_id = p_report AND refused_to = v_to LIMIT 100) f) THEN
        SELECT * INTO known FROM refusal
        WHERE report_id = p_report AND refused_to = v_to
        ORDER BY last_at DESC, presented_epoch DESC, presented_counter DESC
        LIMIT 1;
    END IF;
    IF known.report_id IS NULL THEN
        INSERT INTO refusal (report_id, code, presented_epoch, presented_counter, refused_to, reason,
                             highest_epoch, highest_counter, first_at, last_at)
        VALUES (p_report, p_code, p_epoch, p_counter, v_to, p_reason, p_highest_epoch, p_highest_counter, p_now, p_now);
        RETURN;
    END IF;
    UPDATE refusal
    SET times = times + 1, last_at = p_now, reason = p_reason, code = p_code,
        presented_epoch = p_epoch, presented_counter = p_counter,
        highest_epoch = p_highest_epoch, highest_counter = p_highest_counter
    WHERE (report_id, code, presented_epoch, presented_counter, refused_to)
        = (known.report_id, known.code, known.presented_epoch, known.presented_counter, known.refused_to);
END
$$;

REVOKE ALL ON FUNCTION note_refusal FROM PUBLIC;
