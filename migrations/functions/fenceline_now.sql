-- The time by which everything is decided: the database's, read when it is asked for and not when the
-- transaction began. A decision reads it after it holds the lock that it decides under.
CREATE OR REPLACE FUNCTION fenceline_now() RETURNS timestamptz
LANGUAGE sql VOLATILE
AS $$ SELECT clock_timestamp() $$;

REVOKE ALL ON FUNCTION fenceline_now FROM PUBLIC;
GRANT EXECUTE ON FUNCTION fenceline_now TO fenceline_service;
