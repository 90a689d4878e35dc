-- Why a published object is kept without limit: visible, held, or kept_version (a version among the newest that
-- the report keeps beyond the visible one shows it). NULL: nothing keeps it.
CREATE OR REPLACE FUNCTION kept_as(r report, p_epoch integer, p_counter bigint, p_object text) RETURNS text
LANGUAGE sql STABLE
SET search_path = public, pg_temp
AS $$
    SELECT CASE
        WHEN (p_epoch, p_counter, p_object) = (r.visible_epoch, r.visible_counter, r.visible_object_id) THEN 'visible'
        WHEN EXISTS (
            SELECT FROM publication
            WHERE (report_id, object_epoch, object_counter, object_id) = (r.report_id, p_epoch, p_counter, p_object)
              AND held_at IS NOT NULL) THEN 'held'
        WHEN EXISTS (
            SELECT FROM (
                SELECT object_epoch, object_counter, object_id
                FROM publication
                WHERE report_id = r.report_id AND version < r.version AND object_id IS NOT NULL
                ORDER BY version DESC
                LIMIT (settings_of(r)).keep_versions
            ) newest
            WHERE (object_epoch, object_counter, object_id) = (p_epoch, p_counter, p_object)) THEN 'kept_version'
    END
$$;

REVOKE ALL ON FUNCTION kept_as FROM PUBLIC;
