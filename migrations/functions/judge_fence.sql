-- The comparison. The bar is computed from the report's mode and never stored for one, so that a change
-- of modes opens no gap: at least what was accepted; in the modes granted and live also what was granted;
-- above what was revoked; its epoch not closed.
-- Status: NULL (passes), stale_fence, fence_not_granted, lease_not_live.
-- The caller holds the report's row, and has read p_now after it held it.
CREATE OR REPLACE FUNCTION judge_fence(r report, p_epoch integer, p_counter bigint, p_floor_epoch integer, p_now timestamptz,
    OUT status text, OUT reason text, OUT highest_epoch integer, OUT highest_counter bigint)
LANGUAGE plpgsql STABLE
SET search_path = public, pg_temp
AS $$
DECLARE
    v_mode text := (settings_of(r)).fencing;
BEGIN
    highest_epoch := r.accepted_epoch;
    highest_counter := r.accepted_counter;
    IF v_mode IN ('granted', 'live') THEN -- accepted is never above granted
        highest_epoch := r.granted_epoch;
        highest_counter := r.granted_counter;
    END IF;

    IF (p_epoch, p_counter) < (highest_epoch, highest_counter) THEN
        status := 'stale_fence';
        reason := 'superseded';
    ELSIF (p_epoch, p_counter) <= (r.barred_epoch, r.barred_counter) THEN
        status := 'stale_fence';
        reason := 'revoked';
    ELSIF p_epoch < p_floor_epoch THEN
        status := 'stale_fence';
        reason := 'epoch_closed';
    ELSIF (p_epoch, p_counter) > (r.granted_epoch, r.granted_counter) THEN
        status := 'fence_not_granted';
    ELSIF v_mode = 'live' AND NOT lease_is_live(r, p_floor_epoch, p_now) THEN
        status := 'lease_not_live';
    END IF;

    IF (r.barred_epoch, r.barred_counter) > (highest_epoch, highest_counter) THEN
        highest_epoch := r.barred_epoch;
        highest_counter := r.barred_counter;
    END IF;
END
$$;

REVOKE ALL ON FUNCTION judge_fence FROM PUBLIC;
