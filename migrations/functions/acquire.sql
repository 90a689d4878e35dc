-- Grants a lease with a fence greater than every one before it, without waiting.
-- Status: acquired, replayed, busy, lease_lost, lease_id_reused, counter_exhausted, frozen, epoch_in_doubt.
-- Locks: the barrier (shared), then the report's row, which it creates where it is missing. The clock
-- and the lease are read after the row is held: whoever waited here sees the lease of the one who went
-- before, and does not judge by a time that has passed.
CREATE OR REPLACE FUNCTION acquire(p_report text, p_lease text, p_holder text, p_ttl_ms bigint)
RETURNS TABLE (status text, reason text, holder text, fence_epoch integer, fence_counter bigint,
               remaining_ms bigint, version bigint)
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
        RETURN QUERY SELECT 'epoch_in_doubt', NULL, NULL, NULL::integer, NULL::bigint, NULL::bigint, NULL::bigint;
        RETURN;
    END IF;

    r := lock_report(p_report, true);
    v_now := fenceline_now();
    SELECT * INTO l FROM lease WHERE report_id = p_report AND lease_id = p_lease;

    IF l.lease_id IS NOT NULL THEN
        IF r.lease_id IS DISTINCT FROM p_lease OR NOT lease_is_live(r, v_floor, v_now) THEN
            -- An id that has ended never grants again: this request may be older than the end.
            IF r.lease_id = p_lease THEN
                PERFORM end_lease(r, lost_reason(l, r, v_floor), v_now);
            END IF;
            status := 'lease_lost';
            reason := lost_reason(l, r, v_floor);
        ELSIF l.holder <> p_holder OR l.ttl_ms <> p_ttl_ms THEN
            status := 'lease_id_reused';
        ELSE
            status := 'replayed';
            fence_epoch := l.fence_epoch;
            fence_counter := l.fence_counter;
        END IF;
    ELSIF is_frozen(p_report) THEN
        status := 'frozen';
    ELSIF lease_is_live(r, v_floor, v_now) THEN
        status := 'busy';
    ELSIF r.granted_counter = 9223372036854775807 AND r.granted_epoch >= v_epoch THEN
        status := 'counter_exhausted';
    ELSE
        IF r.lease_id IS NOT NULL THEN
            PERFORM end_lease(r, 'superseded', v_now);
        END IF;
        status := 'acquired';
        fence_epoch := v_epoch;
        fence_counter := CASE WHEN r.granted_counter = 9223372036854775807 THEN 1 ELSE r.granted_counter + 1 END;

        INSERT INTO lease (report_id, lease_id, holder, ttl_ms, fence_epoch, fence_counter, granted_at, created_at)
        VALUES (p_report, p_lease, p_holder, p_ttl_ms, acquire.fence_epoch, acquire.fence_counter, v_now, v_now);

        UPDATE report
        SET granted_epoch = acquire.fence_epoch, granted_counter = acquire.fence_counter,
            lease_id = p_lease, lease_holder = p_holder,
            lease_expires_at = v_now + p_ttl_ms * interval '1 millisecond'
        WHERE report_id = p_report
        RETURNING * INTO r;
    END IF;

    holder := r.lease_holder;
    version := r.version;
    remaining_ms := milliseconds_between(v_now, r.lease_expires_at);
    RETURN NEXT;
END
$$;

REVOKE ALL ON FUNCTION acquire FROM PUBLIC;
GRANT EXECUTE ON FUNCTION acquire TO fenceline_service;
