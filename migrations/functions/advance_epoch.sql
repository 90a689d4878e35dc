-- Begins the next epoch because an operator says so, for the database as it is now. With a floor the older epochs are
-- closed: their fences are refused and their leases are not live, whatever their reports have seen. What was staged
-- or given up before is kept for its retention anew: p_staged_ms says for how long where it was never published.
-- Status: advanced; epoch_mismatch (with the present epoch, which is not p_expected); standby.
-- Locks: the barrier, exclusively, so that no mutation that entered in the old epoch commits in the new.
CREATE OR REPLACE FUNCTION advance_epoch(p_expected integer, p_floor boolean, p_reason text, p_by text, p_staged_ms bigint)
RETURNS TABLE (status text, epoch integer)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    e     epoch%ROWTYPE;
    v_now timestamptz;
BEGIN
    IF pg_is_in_recovery() THEN
        RETURN QUERY SELECT 'standby', NULL::integer;
        RETURN;
    END IF;
    PERFORM close_barrier();
    v_now := fenceline_now();
    SELECT * INTO e FROM epoch ORDER BY epoch DESC LIMIT 1;
    IF e.epoch IS DISTINCT FROM p_expected THEN
        RETURN QUERY SELECT 'epoch_mismatch', e.epoch;
        RETURN;
    END IF;

    INSERT INTO epoch (epoch, floor_epoch, began_at, reason, advanced_by, staged_until, system_identifier, timeline,
                       postmaster_started_at, database_oid, report_filenode)
    SELECT e.epoch + 1, CASE WHEN p_floor THEN e.epoch + 1 ELSE e.floor_epoch END, v_now, p_reason, p_by,
           CASE WHEN p_floor THEN v_now + p_staged_ms * interval '1 millisecond' END,
           (SELECT system_identifier::text FROM pg_control_system()), i.timeline,
           i.postmaster_started_at, i.database_oid, i.report_filenode
    FROM database_identity() i;
    PERFORM pg_notify('fenceline_lease', ''); -- leases that a floor has ended are waited for
    RETURN QUERY SELECT 'advanced', e.epoch + 1;
END
$$;

REVOKE ALL ON FUNCTION advance_epoch FROM PUBLIC;
GRANT EXECUTE ON FUNCTION advance_epoch TO fenceline_service;
