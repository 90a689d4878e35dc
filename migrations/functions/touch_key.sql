-- Notes that an API key was used, to the minute: more often would be a write a request.
-- It keeps the request that it belongs to waiting for nobody: where another holds the row it notes nothing (most
-- likely that one notes the same), and its commit waits for no disk and no standby, since a note that a crash
-- loses comes again within the minute.
-- Locks: the key's row, under which it is looked at once more whether the note is due.
CREATE OR REPLACE FUNCTION touch_key(p_key_id text) RETURNS void
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT set_config('synchronous_commit', 'off', true);
    UPDATE api_key
    SET last_used_at = fenceline_now()
    WHERE key_id = (
        SELECT key_id FROM api_key
        WHERE key_id = p_key_id AND coalesce(last_used_at, '-infinity') <= fenceline_now() - interval '1 minute'
        FOR UPDATE SKIP LOCKED)
$$;

REVOKE ALL ON FUNCTION touch_key FROM PUBLIC;
GRANT EXECUTE ON FUNCTION touch_key TO fenceline_service;
