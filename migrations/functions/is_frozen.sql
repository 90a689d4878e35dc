-- Whether the report only resolves for now. Whoever asks holds the report's row: a freeze takes the barrier
-- exclusively, so it waits for every change that was let through before.
CREATE OR REPLACE FUNCTION is_frozen(p_report text) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    SELECT EXISTS (
        SELECT FROM frozen_reports
        WHERE pattern = p_report OR right(pattern, 1) = '*' AND starts_with(p_report, left(pattern, -1))
    )
$$;

REVOKE ALL ON FUNCTION is_frozen FROM PUBLIC;
GRANT EXECUTE ON FUNCTION is_frozen TO fenceline_service;
