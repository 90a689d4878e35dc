-- Revokes an API key, from now or from a later moment (where it is being replaced). An earlier end stays.
-- Status: revoked, key_not_found.
CREATE OR REPLACE FUNCTION revoke_key(p_key_id text, p_after_ms bigint)
RETURNS TABLE (status text)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    UPDATE api_key
    SET revoked_at = least(revoked_at, fenceline_now() + p_after_ms * interval '1 millisecond')
    WHERE key_id = p_key_id;
    RETURN QUERY SELECT CASE WHEN FOUND THEN 'revoked' ELSE 'key_not_found' END;
END
$$;

REVOKE ALL ON FUNCTION revoke_key FROM PUBLIC;
GRANT EXECUTE ON FUNCTION revoke_key TO fenceline_service;
