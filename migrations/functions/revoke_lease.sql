-- Bars a fence and all below it, in every mode, and ends the lease that holds one of them. Clearing a
-- lock would not stop the old process; the fence does. p_epoch NULL means the greatest granted.
-- Status: revoked, fence_not_granted, report_not_found, frozen, epoch_in_doubt.
-- Locks: the barrier (shared), then the report's row.
CREATE OR REPLACE FUNCTION revoke_lease(p_report text, p_epoch integer, p_counter bigint, p_reason text, p_by text)
RETURNS TABLE (status text, fence_epoch integer, fence_counter bigint, granted_epoch integer, granted_counter bigint)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_epoch integer;
    v_floor integer;
    v_now   timestamptz;
    r       report%ROWTYPE;
BEGIN
    SELECT epoch, floor_epoch INTO v_epoch, v_floor FROM enter();
    IF v_epoch IS NULL THEN
        RETURN QUERY SELECT 'epoch_in_doubt', NULL::integer, NULL::bigint, NULL::integer, NULL::bigint;
        RETURN;
    END IF;

    r := lock_report(p_report);
    IF r.report_id IS NULL THEN
        RETURN QUERY SELECT 'report_not_found', NULL::integer, NULL::bigint, NULL::integer, NULL::bigint;
        RETURN;
    END IF;
    IF is_frozen(p_report) THEN
        RETURN QUERY SELECT 'frozen', NULL::integer, NULL::bigint, NULL::integer, NULL::bigint;
        RETURN;
    END IF;
    v_now := fenceline_now();
    fence_epoch := coalesce(p_epoch, r.granted_epoch);
    fence_counter := coalesce(p_counter, r.granted_counter);
    granted_epoch := r.granted_epoch;
    granted_counter := r.granted_counter;

    IF fence_counter = 0 OR (fence_epoch, fence_counter) > (r.granted_epoch, r.granted_counter) THEN
        status := 'fence_not_granted';
        RETURN NEXT;
        RETURN;
    END IF;

    status := 'revoked';
    IF (fence_epoch, fence_counter) > (r.barred_epoch, r.barred_counter) THEN
        UPDATE report
        SET barred_epoch = revoke_lease.fence_epoch, barred_counter = revoke_lease.fence_counter,
            barred_at = v_now, barred_by = p_by, barred_reason = p_reason
        WHERE report_id = p_report;
    END IF;
    IF r.lease_id IS NOT NULL AND (fence_epoch, fence_counter) = (r.granted_epoch, r.granted_counter) THEN
        PERFORM end_lease(r, CASE WHEN lease_is_live(r, v_floor, v_now) THEN 'revoked' ELSE 'expired' END, v_now);
        PERFORM pg_notify('fenceline_lease', p_report);
    END IF;
    RETURN NEXT;
END
$$;

REVOKE ALL ON FUNCTION revoke_lease FROM PUBLIC;
GRANT EXECUTE ON FUNCTION revoke_lease TO fenceline_service;
