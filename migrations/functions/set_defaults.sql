-- Sets the service's defaults of the reports' settings. What is kept for longer by them is kept at once; what is
-- kept for less long goes by the next settling of its report, or when its old time is over.
-- Status: set, unchanged, epoch_in_doubt.
-- Locks: the barrier, exclusively, so that no change is judged by two sets of defaults.
CREATE OR REPLACE FUNCTION set_defaults(p_fencing text, p_publishes_per_grant text, p_retention_ms bigint, p_keep_versions integer)
RETURNS TABLE (status text)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(x'46454e43'::integer, 1);
    IF (SELECT epoch FROM enter()) IS NULL THEN
        RETURN QUERY SELECT 'epoch_in_doubt';
        RETURN;
    END IF;
    UPDATE service_default
    SET fencing = p_fencing, publishes_per_grant = p_publishes_per_grant, retention_ms = p_retention_ms, keep_versions = p_keep_versions
    WHERE (fencing, publishes_per_grant, retention_ms, keep_versions)
          IS DISTINCT FROM (p_fencing, p_publishes_per_grant, p_retention_ms, p_keep_versions);
    RETURN QUERY SELECT CASE WHEN FOUND THEN 'set' ELSE 'unchanged' END;
END
$$;

REVOKE ALL ON FUNCTION set_defaults FROM PUBLIC;
GRANT EXECUTE ON FUNCTION set_defaults TO fenceline_service;
