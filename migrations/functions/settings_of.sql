-- The settings that a report is under: its own, and the service's defaults for the rest.
CREATE OR REPLACE FUNCTION settings_of(r report,
    OUT fencing text, OUT publishes_per_grant text, OUT retention_ms bigint, OUT keep_versions integer)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    SELECT coalesce(r.fencing, d.fencing), coalesce(r.publishes_per_grant, d.publishes_per_grant),
           coalesce(r.retention_ms, d.retention_ms), coalesce(r.keep_versions, d.keep_versions)
    FROM service_default d
$$;

REVOKE ALL ON FUNCTION settings_of FROM PUBLIC;
GRANT EXECUTE ON FUNCTION settings_of TO fenceline_service;
