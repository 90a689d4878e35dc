-- Changes the settings that p_changes names, a null giving one back to the service's default, and creates the
-- report where it is missing. What is thereby kept or given up, and for how long, follows at once.
-- Status: changed, frozen, epoch_in_doubt.
-- Locks: the barrier (shared), the report's row, then by key every object of it that is kept, that comes to be kept, or that
-- waits for the end of a retention that has become shorter.
CREATE OR REPLACE FUNCTION change_settings(p_report text, p_changes jsonb)
RETURNS TABLE (status text)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz;
    v_old record;
    v_new record;
    r     report%ROWTYPE;
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
    v_old := settings_of(r);

    UPDATE report
    SET fencing = CASE WHEN p_changes ? 'fencing' THEN p_changes ->> 'fencing' ELSE fencing END,
        publishes_per_grant = CASE WHEN p_changes ? 'publishes_per_grant' THEN p_changes ->> 'publishes_per_grant' ELSE publishes_per_grant END,
        retention_ms = CASE WHEN p_changes ? 'retention_ms' THEN (p_changes ->> 'retention_ms')::bigint ELSE retention_ms END,
        keep_versions = CASE WHEN p_changes ? 'keep_versions' THEN (p_changes ->> 'keep_versions')::integer ELSE keep_versions END
    WHERE report_id = p_report
    RETURNING * INTO r;
    v_new := settings_of(r);

    IF p_changes ? 'keep_versions' THEN -- also if it is the default: that may have changed, and not been followed yet
        PERFORM settle_object(p_report, o.fence_epoch, o.fence_counter, o.object_id, v_now)
        FROM (
            SELECT o.*
            FROM object o
            WHERE o.report_id = p_report AND o.state = 'sealed'
              AND (o.eligible_at IS NULL OR (o.fence_epoch, o.fence_counter, o.object_id) IN (
                    SELECT object_epoch, object_counter, object_id FROM newest_versions(p_report, greatest(v_old.keep_versions, v_new.keep_versions) + 1)))
            ORDER BY o.key
            FOR NO KEY UPDATE
        ) o;
    END IF;
    -- A longer retention counts by itself: the collector judges by it.
    IF v_new.retention_ms < v_old.retention_ms THEN
        UPDATE object o
        SET eligible_at = o.unkept_at + v_new.retention_ms * interval '1 millisecond'
        FROM (
            SELECT key FROM object
            WHERE report_id = p_report AND state = 'sealed' AND unkept_at IS NOT NULL AND eligible_at IS NOT NULL
            ORDER BY key
            FOR NO KEY UPDATE
        ) waiting
        WHERE o.report_id = p_report AND o.key = waiting.key;
    END IF;
    RETURN QUERY SELECT 'changed';
END
$$;

REVOKE ALL ON FUNCTION change_settings FROM PUBLIC;
GRANT EXECUTE ON FUNCTION change_settings TO fenceline_service;
