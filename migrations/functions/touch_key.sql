-- Notes that an API key was used, to the minute: more often would be a write a request.
CREATE OR REPLACE FUNCTION touch_key(p_key_id text) RETURNS void
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    UPDATE api_key
    SET last_used_at = fenceline_now()
    WHERE key_id = p_key_id AND coalesce(last_used_at, '-infinity') < fenceline_now() - interval '1 minute'
$$;

REVOKE ALL ON FUNCTION touch_key FROM PUBLIC;
GRANT EXECUTE ON FUNCTION touch_key TO fenceline_service;
