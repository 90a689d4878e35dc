-- Takes the barrier exclusively: waits for every mutation that has entered, and holds all others off until this
-- transaction ends.
CREATE OR REPLACE FUNCTION close_barrier() RETURNS void
LANGUAGE sql
AS $$ SELECT pg_advisory_xact_lock(x'46454e43'::integer, 1) $$;

REVOKE ALL ON FUNCTION close_barrier FROM PUBLIC;
