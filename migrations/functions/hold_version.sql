-- Holds a version, so that its object is kept until the hold is lifted; or lifts it. Repeated it does nothing.
-- Status: held, not_held, report_not_found, version_not_found, object_not_found (a withdrawal's), object_gone,
-- frozen, epoch_in_doubt.
-- Locks: the barrier (shared), the report's row, the object's row.
CREATE OR REPLACE FUNCTION hold_version(p_report text, p_version bigint, p_hold boolean, p_by text)
RETURNS TABLE (status text)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz;
    r     report%ROWTYPE;
    p     publication%ROWTYPE;
    o     object%ROWTYPE;
BEGIN
    IF (SELECT epoch FROM enter()) IS NULL THEN
        RETURN QUERY SELECT 'epoch_in_doubt';
        RETURN;
    END IF;
    r := lock_report(p_report);
    v_now := fenceline_now();
    SELECT * INTO p FROM publication WHERE report_id = p_report AND version = p_version;
    SELECT * INTO o FROM object
    WHERE (report_id, fence_epoch, fence_counter, object_id) = (p_report, p.object_epoch, p.object_counter, p.object_id)
    FOR NO KEY UPDATE;

    status := CASE
        WHEN r.report_id IS NULL THEN 'report_not_found'
        WHEN is_frozen(p_report) THEN 'frozen'
        WHEN p.version IS NULL THEN 'version_not_found'
        WHEN p.object_id IS NULL THEN 'object_not_found'
        WHEN p_hold AND o.state IS DISTINCT FROM 'sealed' THEN 'object_gone'
        WHEN p_hold THEN 'held'
        ELSE 'not_held'
    END;
    IF status IN ('held', 'not_held') AND (p.held_at IS NOT NULL) <> p_hold THEN
        UPDATE publication
        SET held_at = CASE WHEN p_hold THEN v_now END, held_by = CASE WHEN p_hold THEN p_by END
        WHERE report_id = p_report AND version = p_version;
        PERFORM settle_object(p_report, o.fence_epoch, o.fence_counter, o.object_id, v_now);
    END IF;
    RETURN NEXT;
END
$$;

REVOKE ALL ON FUNCTION hold_version FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hold_version TO fenceline_service;
