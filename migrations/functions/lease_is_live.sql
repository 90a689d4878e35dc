-- Whether the report's lease is live: held, not expired, and not of a closed epoch.
CREATE OR REPLACE FUNCTION lease_is_live(r report, p_floor_epoch integer, p_now timestamptz) RETURNS boolean
LANGUAGE sql IMMUTABLE
AS $$
    SELECT r.lease_id IS NOT NULL AND r.lease_expires_at > p_now AND r.granted_epoch >= p_floor_epoch
$$;

REVOKE ALL ON FUNCTION lease_is_live FROM PUBLIC;
GRANT EXECUTE ON FUNCTION lease_is_live TO fenceline_service;
