-- Whether the report has still to follow a changed default of keep_versions (settle_defaults).
CREATE OR REPLACE FUNCTION is_unsettled(r report) RETURNS boolean
LANGUAGE sql STABLE
SET search_path = public, pg_temp
AS $$
    SELECT r.keep_versions IS NULL AND coalesce(r.report_id > d.settled_to, false) FROM service_default d
$$;

REVOKE ALL ON FUNCTION is_unsettled FROM PUBLIC;
