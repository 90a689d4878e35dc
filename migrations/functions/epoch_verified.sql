-- Whether the database is the one whose identity was last verified. The collector asks between signing
-- a delete and sending it.
CREATE OR REPLACE FUNCTION epoch_verified() RETURNS boolean
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$ SELECT e.epoch IS NOT NULL FROM enter() e $$;

REVOKE ALL ON FUNCTION epoch_verified FROM PUBLIC;
GRANT EXECUTE ON FUNCTION epoch_verified TO fenceline_service;
