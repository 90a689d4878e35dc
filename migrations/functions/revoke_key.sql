-- Revokes an API key, from now or from a later moment (where it is being replaced). An earlier end stays, so
-- repeating it changes nothing.
-- Status: revoked, key_not_found. ends_at is when the key ends, or has ended, be it by its expiry.
CREATE OR REPLACE FUNCTION revoke_key(p_key_id text, p_after_ms bigint)
RETURNS TABLE (status text, ends_at timestamptz)
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
BEGIN
    RETURN QUERY
        UPDATE api_key
        SET revoked_at = least(revoked_at, fenceline_now() + p_after_ms * interval '1 millisecond')
        WHERE key_id = p_key_id
        RETURNING 'revoked', least(revoked_at, expires_at);
    IF NOT FOUND THEN
        RETURN QUERY SELECT 'key_not_found', NULL::timestamptz;
    END IF;
END
$$;

-- The database's owner makes and ends keys: a service that was taken over must not make itself an operator's.
REVOKE ALL ON FUNCTION revoke_key FROM PUBLIC, fenceline_service;
