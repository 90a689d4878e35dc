-- Locks the report's row and returns it as it is once the lock is held; creates it on demand, and
-- answers NULLs where it does not exist. FOR NO KEY UPDATE, so that the foreign keys' checks of
-- others need not wait.
CREATE OR REPLACE FUNCTION lock_report(p_report text, p_create boolean DEFAULT false) RETURNS report
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    r report%ROWTYPE;
BEGIN
    SELECT * INTO r FROM report WHERE report_id = p_report FOR NO KEY UPDATE;
    IF r.report_id IS NULL AND p_create THEN
        INSERT INTO report (report_id, created_at) VALUES (p_report, fenceline_now())
        ON CONFLICT DO NOTHING;
        SELECT * INTO r FROM report WHERE report_id = p_report FOR NO KEY UPDATE;
    END IF;
    RETURN r;
END
$$;

REVOKE ALL ON FUNCTION lock_report FROM PUBLIC;
