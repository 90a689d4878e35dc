-- Verifies the database's identity; where it is new (a restart, a promotion, a restore, a rewritten
-- table) the next epoch begins. Fences' counters go on, so every later grant is greater.
-- Status: verified, advanced, standby (a standby decides nothing).
-- Locks: the barrier, exclusively, so that no mutation that entered in the old epoch commits in the new.
CREATE OR REPLACE FUNCTION verify_epoch()
RETURNS TABLE (status text, epoch integer, floor_epoch integer)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    e epoch%ROWTYPE;
    i record;
    v_system text;
BEGIN
    IF pg_is_in_recovery() THEN
        RETURN QUERY SELECT 'standby', NULL::integer, NULL::integer;
        RETURN;
    END IF;
    PERFORM close_barrier();

    SELECT * INTO i FROM database_identity();
    SELECT system_identifier::text INTO v_system FROM pg_control_system();
    SELECT * INTO e FROM epoch ORDER BY epoch DESC LIMIT 1;

    IF e.epoch IS NOT NULL
       AND (e.system_identifier, e.timeline, e.postmaster_started_at, e.database_oid, e.report_filenode)
         = (v_system, i.timeline, i.postmaster_started_at, i.database_oid, i.report_filenode) THEN
        RETURN QUERY SELECT 'verified', e.epoch, e.floor_epoch;
        RETURN;
    END IF;

    RETURN QUERY
    INSERT INTO epoch (epoch, floor_epoch, began_at, reason, system_identifier, timeline,
                       postmaster_started_at, database_oid, report_filenode)
    VALUES (coalesce(e.epoch, 0) + 1, coalesce(e.floor_epoch, 1), fenceline_now(),
            CASE WHEN e.epoch IS NULL THEN 'first start'
                 WHEN e.system_identifier <> v_system THEN 'another system'
                 WHEN e.timeline <> i.timeline THEN 'another timeline'
                 WHEN e.database_oid <> i.database_oid THEN 'another database'
                 WHEN e.postmaster_started_at <> i.postmaster_started_at THEN 'restart'
                 ELSE 'rewritten table' END,
            v_system, i.timeline, i.postmaster_started_at, i.database_oid, i.report_filenode)
    RETURNING 'advanced', epoch, floor_epoch;
END
$$;

REVOKE ALL ON FUNCTION verify_epoch FROM PUBLIC;
GRANT EXECUTE ON FUNCTION verify_epoch TO fenceline_service;
