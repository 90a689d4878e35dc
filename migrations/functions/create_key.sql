-- Records an API key by its hash; the key itself is never stored. A life of NULL has no end.
-- Status: created, key_exists.
CREATE OR REPLACE FUNCTION create_key(p_key_id text, p_hash bytea, p_name text, p_role text, p_pattern text, p_life_ms bigint)
RETURNS TABLE (status text, created_at timestamptz, expires_at timestamptz)
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := fenceline_now();
BEGIN
    RETURN QUERY
        INSERT INTO api_key (key_id, hash, name, role, pattern, created_at, expires_at)
        VALUES (p_key_id, p_hash, p_name, p_role, p_pattern, v_now, v_now + p_life_ms * interval '1 millisecond')
        ON CONFLICT (key_id) DO NOTHING
        RETURNING 'created', created_at, expires_at;
    IF NOT FOUND THEN
        RETURN QUERY SELECT 'key_exists', NULL::timestamptz, NULL::timestamptz;
    END IF;
END
$$;

-- The database's owner makes and ends keys: a service that was taken over must not make itself an operator's.
REVOKE ALL ON FUNCTION create_key FROM PUBLIC, fenceline_service;
