-- Ends the lease that stands in the report's row, for the reason given, and writes it down in its
-- history. The caller holds the report's row.
CREATE OR REPLACE FUNCTION end_lease(r report, p_reason text, p_now timestamptz) RETURNS void
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    UPDATE lease
    SET ended_at = p_now, end_reason = p_reason
    WHERE report_id = r.report_id AND lease_id = r.lease_id AND ended_at IS NULL;

    UPDATE report
    SET lease_id = NULL, lease_holder = NULL, lease_expires_at = NULL
    WHERE report_id = r.report_id;
END
$$;

REVOKE ALL ON FUNCTION end_lease FROM PUBLIC;
