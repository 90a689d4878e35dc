-- Prolongs a live lease to now + ttl, never to less than it had: a delayed shorter renewal must not take
-- back what was acknowledged. A refusal for expiry is written down, so that a clock that steps back
-- revives nothing. It answers too what the lease had left at that moment: how close it was.
-- Status: renewed, lease_lost, lease_not_found, epoch_in_doubt.
-- Locks: the barrier (shared), then the report's row; only then are the clock and the lease read. (A
-- conditional UPDATE that has waited for the row would judge by the time before the wait.)
CREATE OR REPLACE FUNCTION renew(p_report text, p_lease text, p_ttl_ms bigint)
RETURNS TABLE (status text, reason text, fence_epoch integer, fence_counter bigint, left_ms bigint, remaining_ms bigint)
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
        RETURN QUERY SELECT 'epoch_in_doubt', NULL, NULL::integer, NULL::bigint, NULL::bigint, NULL::bigint;
        RETURN;
    END IF;

    r := lock_report(p_report);
    v_now := fenceline_now();
    SELECT * INTO l FROM lease WHERE report_id = p_report AND lease_id = p_lease;

    IF l.lease_id IS NULL THEN
        status := 'lease_not_found';
    ELSIF r.lease_id IS DISTINCT FROM p_lease OR NOT lease_is_live(r, v_floor, v_now) THEN
        status := 'lease_lost';
        reason := lost_reason(l, r, v_floor);
        IF r.lease_id = p_lease THEN
            PERFORM end_lease(r, reason, v_now);
        END IF;
    ELSE
        left_ms := milliseconds_between(v_now, r.lease_expires_at);
        UPDATE report
        SET lease_expires_at = greatest(lease_expires_at, v_now + coalesce(p_ttl_ms, l.ttl_ms) * interval '1 millisecond')
        WHERE report_id = p_report
        RETURNING * INTO r;
        status := 'renewed';
        fence_epoch := r.granted_epoch;
        fence_counter := r.granted_counter;
        remaining_ms := milliseconds_between(v_now, r.lease_expires_at);
    END IF;
    RETURN NEXT;
END
$$;

REVOKE ALL ON FUNCTION renew FROM PUBLIC;
GRANT EXECUTE ON FUNCTION renew TO fenceline_service;
