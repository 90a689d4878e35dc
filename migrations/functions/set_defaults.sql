-- Sets the service's defaults of the reports' settings, for all instances. What follows from them for objects that were
-- published before does so bit by bit (settle_defaults, and in the passes of the collector shorten_retention): nobody has
-- to wait for millions of rows here.
-- Status: set, unchanged, unsettled (the reports have not all followed the last change of keep_versions: settle them first), epoch_in_doubt.
-- Locks: the barrier, exclusively, so that no change is judged by two sets of defaults.
CREATE OR REPLACE FUNCTION set_defaults(p_fencing text, p_publishes_per_grant text, p_retention_ms bigint, p_keep_versions integer)
RETURNS TABLE (status text)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    -- As with most starts: nobody has to wait for it then.
    IF EXISTS (SELECT FROM service_default d
               WHERE (d.fencing, d.publishes_per_grant, d.retention_ms, d.keep_versions)
                   = (p_fencing, p_publishes_per_grant, p_retention_ms, p_keep_versions)) THEN
        RETURN QUERY SELECT 'unchanged';
        RETURN;
    END IF;
    PERFORM close_barrier();
    IF (SELECT epoch FROM enter()) IS NULL THEN
        RETURN QUERY SELECT 'epoch_in_doubt';
        RETURN;
    END IF;
    IF EXISTS (SELECT FROM service_default WHERE settled_to IS NOT NULL AND keep_versions <> p_keep_versions) THEN
        RETURN QUERY SELECT 'unsettled';
        RETURN;
    END IF;
    UPDATE service_default
    SET fencing = p_fencing, publishes_per_grant = p_publishes_per_grant, retention_ms = p_retention_ms, keep_versions = p_keep_versions,
        keep_changed_at = CASE WHEN keep_versions <> p_keep_versions THEN fenceline_now() ELSE keep_changed_at END,
        settled_to = CASE WHEN keep_versions <> p_keep_versions THEN '' ELSE settled_to END;
    RETURN QUERY SELECT 'set';
END
$$;

REVOKE ALL ON FUNCTION set_defaults FROM PUBLIC;
GRANT EXECUTE ON FUNCTION set_defaults TO fenceline_service;
