-- Notes the bucket that holds the catalog's objects. Another one is taken in its place only where p_proven: it says itself
-- that it is the catalog's, as a copy does. An empty one would be a second bucket, and the objects in the first be lost to it.
-- Status: claimed; elsewhere (with the bucket that holds them).
-- Locks: the row of the deployment.
CREATE OR REPLACE FUNCTION claim_bucket(p_bucket text, p_proven boolean)
RETURNS TABLE (status text, present text)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    UPDATE deployment SET bucket = p_bucket
    WHERE bucket IS DISTINCT FROM p_bucket AND (bucket IS NULL OR p_proven);
    RETURN QUERY SELECT CASE WHEN d.bucket = p_bucket THEN 'claimed' ELSE 'elsewhere' END, d.bucket FROM deployment d;
END
$$;

REVOKE ALL ON FUNCTION claim_bucket FROM PUBLIC;
GRANT EXECUTE ON FUNCTION claim_bucket TO fenceline_service;
