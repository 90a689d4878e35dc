-- Records an API key with the name, role, pattern and life of another, which stays as it is: the first half of
-- a rotation, whose second is revoke_key. A key that has ended is not copied, or a rotation could bring back what
-- was revoked.
-- Status: created, key_not_found, key_ended.
-- Locks: the old key's row, so that a revocation of it comes either before the copy or after it.
CREATE OR REPLACE FUNCTION copy_key(p_old_id text, p_key_id text, p_hash bytea)
RETURNS TABLE (status text, name text, role text, pattern text, created_at timestamptz, expires_at timestamptz)
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz;
    old   api_key%ROWTYPE;
BEGIN
    SELECT * INTO old FROM api_key WHERE key_id = p_old_id FOR SHARE;
    v_now := fenceline_now();
    IF old.key_id IS NULL OR least(old.revoked_at, old.expires_at) <= v_now THEN
        RETURN QUERY SELECT CASE WHEN old.key_id IS NULL THEN 'key_not_found' ELSE 'key_ended' END,
            NULL, NULL, NULL, NULL::timestamptz, NULL::timestamptz;
        RETURN;
    END IF;
    RETURN QUERY
        INSERT INTO api_key (key_id, hash, name, role, pattern, created_at, expires_at)
        VALUES (p_key_id, p_hash, old.name, old.role, old.pattern, v_now, v_now + (old.expires_at - old.created_at))
        RETURNING 'created', name, role, pattern, created_at, expires_at;
END
$$;

-- The database's owner makes and ends keys: a service that was taken over must not make itself an operator's.
REVOKE ALL ON FUNCTION copy_key FROM PUBLIC, fenceline_service;
