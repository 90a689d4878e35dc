-- The newest versions of a report that show an object.
CREATE OR REPLACE FUNCTION newest_versions(p_report text, p_limit integer) RETURNS SETOF publication
LANGUAGE sql STABLE
SET search_path = public, pg_temp
AS $$
    SELECT * FROM publication
    WHERE report_id = p_report AND object_id IS NOT NULL
    ORDER BY version DESC
    LIMIT p_limit
$$;

REVOKE ALL ON FUNCTION newest_versions FROM PUBLIC;
