-- Whether the report only resolves for now. Whoever asks holds the report's row: a freeze takes the barrier
-- exclusively, so it waits for every change that was let through before.
CREATE OR REPLACE FUNCTION is_frozen(p_report text) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    SELECT EXISTS (SELECT FROM frozen_reports) AND EXISTS (
        SELECT FROM frozen_reports
        -- each pattern that covers it, so that an index finds them among many
        WHERE pattern = p_report OR pattern = ANY (ARRAY(SELECT left(p_report, n) || '*' FROM generate_series(0, length(p_report)) n))
    )
$$;

REVOKE ALL ON FUNCTION is_frozen FROM PUBLIC;
GRANT EXECUTE ON FUNCTION is_frozen TO fenceline_service;
