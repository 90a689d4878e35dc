-- Freezes the reports that a pattern covers, so that they only resolve; or lifts exactly that freeze. Repeated it does nothing.
-- Status: frozen, unfrozen, epoch_in_doubt.
-- Locks: the barrier, exclusively: it waits for every change that was let through before.
CREATE OR REPLACE FUNCTION set_freeze(p_pattern text, p_freeze boolean, p_by text)
RETURNS TABLE (status text)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    IF p_freeze AND EXISTS (SELECT FROM frozen_reports WHERE pattern = p_pattern) THEN -- nobody has to wait for it
        RETURN QUERY SELECT 'frozen';
        RETURN;
    END IF;
    PERFORM close_barrier();
    IF (SELECT epoch FROM enter()) IS NULL THEN
        RETURN QUERY SELECT 'epoch_in_doubt';
        RETURN;
    END IF;
    IF p_freeze THEN
        INSERT INTO frozen_reports (pattern, frozen_at, frozen_by) VALUES (p_pattern, fenceline_now(), p_by)
        ON CONFLICT (pattern) DO NOTHING;
        RETURN QUERY SELECT 'frozen';
    ELSE
        DELETE FROM frozen_reports WHERE pattern = p_pattern;
        RETURN QUERY SELECT 'unfrozen';
    END IF;
END
$$;

REVOKE ALL ON FUNCTION set_freeze FROM PUBLIC;
GRANT EXECUTE ON FUNCTION set_freeze TO fenceline_service;
