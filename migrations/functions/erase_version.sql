-- Condemns the object of a version for good, and marks every version that shows it as erased. Rows and receipts stay.
-- Status: erased (also when repeated), object_in_use (one of them is visible or held), report_not_found,
-- version_not_found, object_not_found (a withdrawal's), object_gone (collected before), frozen, epoch_in_doubt.
-- Locks: the barrier (shared), the report's row, the object's row.
CREATE OR REPLACE FUNCTION erase_version(p_report text, p_version bigint, p_reason text, p_by text, p_grace_ms bigint)
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
    FOR UPDATE;

    status := CASE
        WHEN r.report_id IS NULL THEN 'report_not_found'
        WHEN is_frozen(p_report) THEN 'frozen'
        WHEN p.version IS NULL THEN 'version_not_found'
        WHEN p.erased_at IS NOT NULL THEN 'erased'
        WHEN p.object_id IS NULL THEN 'object_not_found'
        WHEN o.state IS DISTINCT FROM 'sealed' THEN 'object_gone'
        WHEN kept_as(r, p.object_epoch, p.object_counter, p.object_id) IN ('visible', 'held') THEN 'object_in_use'
        ELSE 'erased'
    END;
    IF status = 'erased' AND p.erased_at IS NULL THEN
        UPDATE publication
        SET erased_at = v_now, erased_by = p_by, erase_reason = p_reason
        WHERE (report_id, object_epoch, object_counter, object_id) = (p_report, p.object_epoch, p.object_counter, p.object_id);
        PERFORM condemn_objects(ARRAY[o], ARRAY['erased'], p_grace_ms, v_now);
    END IF;
    RETURN NEXT;
END
$$;

REVOKE ALL ON FUNCTION erase_version FROM PUBLIC;
GRANT EXECUTE ON FUNCTION erase_version TO fenceline_service;
