-- Ends a lease by its exact id, and never another's. An id that was never seen is recorded as ended, so
-- that an acquire which is still on its way cannot grant a lease that nobody will release.
-- Status: released, already_released, lease_lost, epoch_in_doubt.
-- Locks: the barrier (shared), then the report's row.
CREATE OR REPLACE FUNCTION release(p_report text, p_lease text)
RETURNS TABLE (status text, reason text)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_epoch integer;
    v_floor integer;
    v_now   timestamptz;
    r       report%ROWTYPE;
    l       lease%ROWTYPE;
BEGIN
    SELECT epoch, floor_epoch INTO v_epoch, v_floor FROM enter();
    IF v_epoch IS NULL THEN
        RETURN QUERY SELECT 'epoch_in_doubt', NULL;
        RETURN;
    END IF;

    r := lock_report(p_report, true);
    v_now := fenceline_now();
    SELECT * INTO l FROM lease WHERE report_id = p_report AND lease_id = p_lease;

    IF l.lease_id IS NULL THEN
        INSERT INTO lease (report_id, lease_id, ended_at, end_reason, created_at)
        VALUES (p_report, p_lease, v_now, 'released', v_now);
        status := 'already_released';
    ELSIF r.lease_id = p_lease AND lease_is_live(r, v_floor, v_now) THEN
        PERFORM end_lease(r, 'released', v_now);
        status := 'released';
        PERFORM pg_notify('fenceline_lease', p_report); -- wakes whoever waits first
    ELSIF l.end_reason = 'released' THEN
        status := 'already_released';
    ELSE
        status := 'lease_lost';
        reason := lost_reason(l, r, v_floor);
        IF r.lease_id = p_lease THEN
            PERFORM end_lease(r, reason, v_now);
        END IF;
    END IF;
    RETURN NEXT;
END
$$;

REVOKE ALL ON FUNCTION release FROM PUBLIC;
GRANT EXECUTE ON FUNCTION release TO fenceline_service;
