-- Whole milliseconds from one moment to a later one, rounded down: whoever is told how long a lease
-- still lasts is never told too much.
CREATE OR REPLACE FUNCTION milliseconds_between(p_from timestamptz, p_to timestamptz) RETURNS bigint
LANGUAGE sql IMMUTABLE
AS $$ SELECT floor(extract(epoch FROM p_to - p_from) * 1000)::bigint $$;

REVOKE ALL ON FUNCTION milliseconds_between FROM PUBLIC;
GRANT EXECUTE ON FUNCTION milliseconds_between TO fenceline_service;
