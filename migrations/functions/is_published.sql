-- Whether any version of the report shows the object, or once showed it.
CREATE OR REPLACE FUNCTION is_published(p_report text, p_epoch integer, p_counter bigint, p_object text) RETURNS boolean
LANGUAGE sql STABLE
SET search_path = public, pg_temp
AS $$
    SELECT EXISTS (
        SELECT FROM publication
        WHERE (report_id, object_epoch, object_counter, object_id) = (p_report, p_epoch, p_counter, p_object)
    )
$$;

REVOKE ALL ON FUNCTION is_published FROM PUBLIC;
