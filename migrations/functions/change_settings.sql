-- Changes the settings that p_changes names, a null giving one back to the service's default, and creates the
-- report where it is missing. What is thereby kept or given up, and for how long, follows at once.
-- Status: changed, frozen, epoch_in_doubt.
-- Locks: the barrier (shared), the report's row, then by key every object of it that a version may keep or that
-- waits for the end of its retention.
CREATE OR REPLACE FUNCTION change_settings(p_report text, p_changes jsonb)
RETURNS TABLE (status text)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz;
    v_old integer;
    v_new integer;
    r     report%ROWTYPE;
    o     object%ROWTYPE;
BEGIN
    IF (SELECT epoch FROM enter()) IS NULL THEN
        RETURN QUERY SELECT 'epoch_in_doubt';
        RETURN;
    END IF;
    r := lock_report(p_report, true);
    IF is_frozen(p_report) THEN
        RETURN QUERY SELECT 'frozen';
        RETURN;
    END IF;
    v_now := fenceline_now();
    v_old := (settings_of(r)).keep_versions;

    UPDATE report
    SET fencing = CASE WHEN p_changes ? 'fencing' THEN p_changes ->> 'fencing' ELSE fencing END,
        publishes_per_grant = CASE WHEN p_changes ? 'publishes_per_grant' THEN p_changes ->> 'publishes_per_grant' ELSE publishes_per_grant END,
        retention_ms = CASE WHEN p_changes ? 'retention_ms' THEN (p_changes ->> 'retention_ms')::bigint ELSE retention_ms END,
        keep_versions = CASE WHEN p_changes ? 'keep_versions' THEN (p_changes ->> 'keep_versions')::integer ELSE keep_versions END
    WHERE report_id = p_report
    RETURNING * INTO r;
    v_new := (settings_of(r)).keep_versions;

    FOR o IN
        SELECT o.*
        FROM object o
        WHERE o.report_id = p_report AND o.state = 'sealed'
          AND (o.unkept_at IS NOT NULL OR (o.fence_epoch, o.fence_counter, o.object_id) IN (
                SELECT object_epoch, object_counter, object_id
                FROM publication
                WHERE report_id = p_report AND object_id IS NOT NULL
                ORDER BY version DESC
                LIMIT greatest(v_old, v_new) + 1))
        ORDER BY o.key
        FOR NO KEY UPDATE
    LOOP
        PERFORM settle_object(p_report, o.fence_epoch, o.fence_counter, o.object_id, v_now);
    END LOOP;
    RETURN QUERY SELECT 'changed';
END
$$;

REVOKE ALL ON FUNCTION change_settings FROM PUBLIC;
GRANT EXECUTE ON FUNCTION change_settings TO fenceline_service;
