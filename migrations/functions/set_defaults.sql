-- Sets the service's defaults of the reports' settings. The versions that are kept by them, or not any more, are
-- settled at once: nothing else would look at them again. What waits for the end of its retention waits for the new one.
-- Status: set, unchanged, epoch_in_doubt.
-- Locks: the barrier, exclusively, so that no change is judged by two sets of defaults, and nobody else writes a
-- report or an object.
CREATE OR REPLACE FUNCTION set_defaults(p_fencing text, p_publishes_per_grant text, p_retention_ms bigint, p_keep_versions integer)
RETURNS TABLE (status text)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    v_before service_default%ROWTYPE;
    v_less   integer;
    v_now    timestamptz;
BEGIN
    PERFORM pg_advisory_xact_lock(x'46454e43'::integer, 1);
    IF (SELECT epoch FROM enter()) IS NULL THEN
        RETURN QUERY SELECT 'epoch_in_doubt';
        RETURN;
    END IF;
    v_now := fenceline_now();
    SELECT * INTO v_before FROM service_default;
    v_less := least(v_before.keep_versions, p_keep_versions);

    UPDATE service_default
    SET fencing = p_fencing, publishes_per_grant = p_publishes_per_grant, retention_ms = p_retention_ms, keep_versions = p_keep_versions
    WHERE (fencing, publishes_per_grant, retention_ms, keep_versions)
          IS DISTINCT FROM (p_fencing, p_publishes_per_grant, p_retention_ms, p_keep_versions);
    IF NOT FOUND THEN
        RETURN QUERY SELECT 'unchanged';
        RETURN;
    END IF;

    IF v_before.retention_ms <> p_retention_ms THEN
        UPDATE object o
        SET eligible_at = o.unkept_at + p_retention_ms * interval '1 millisecond'
        FROM report r
        WHERE r.report_id = o.report_id AND r.retention_ms IS NULL
          AND o.state = 'sealed' AND o.unkept_at IS NOT NULL;
    END IF;
    IF v_before.keep_versions <> p_keep_versions THEN
        PERFORM settle_object(r.report_id, p.object_epoch, p.object_counter, p.object_id, v_now)
        FROM report r
        CROSS JOIN LATERAL (
            SELECT object_epoch, object_counter, object_id
            FROM publication
            WHERE report_id = r.report_id AND version < r.version AND object_id IS NOT NULL
            ORDER BY version DESC
            OFFSET v_less
            LIMIT greatest(v_before.keep_versions, p_keep_versions) - v_less
        ) p
        WHERE r.keep_versions IS NULL AND r.version > v_less + 1;
    END IF;
    RETURN QUERY SELECT 'set';
END
$$;

REVOKE ALL ON FUNCTION set_defaults FROM PUBLIC;
GRANT EXECUTE ON FUNCTION set_defaults TO fenceline_service;
