-- Keeps a refusal for its fence: who came with which, against which, and how often. The caller holds the report's row.
CREATE OR REPLACE FUNCTION note_refusal(p_report text, p_code text, p_reason text, p_epoch integer, p_counter bigint,
    p_highest_epoch integer, p_highest_counter bigint, p_to text, p_now timestamptz) RETURNS void
LANGUAGE sql
SET search_path = public, pg_temp
AS $$
    INSERT INTO refusal AS f (report_id, code, presented_epoch, presented_counter, refused_to, reason,
                              highest_epoch, highest_counter, first_at, last_at)
    VALUES (p_report, p_code, p_epoch, p_counter, coalesce(p_to, ''), p_reason, p_highest_epoch, p_highest_counter, p_now, p_now)
    ON CONFLICT (report_id, code, presented_epoch, presented_counter, refused_to) DO UPDATE
    SET times = f.times + 1, last_at = excluded.last_at, reason = excluded.reason,
        highest_epoch = excluded.highest_epoch, highest_counter = excluded.highest_counter
$$;

REVOKE ALL ON FUNCTION note_refusal FROM PUBLIC;
