-- Pauses the collector everywhere, or lets it go on. The pass under way stops at its next step.
-- Status: paused, resumed.
-- Locks: none. Every step of a pass looks, in enter_run: one that began at the same moment stops at its first step.
CREATE OR REPLACE FUNCTION set_gc_pause(p_pause boolean, p_by text)
RETURNS TABLE (status text)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    IF p_pause THEN
        INSERT INTO gc_pause (paused_at, paused_by) VALUES (fenceline_now(), p_by)
        ON CONFLICT (only_row) DO NOTHING;
        RETURN QUERY SELECT 'paused';
    ELSE
        DELETE FROM gc_pause;
        RETURN QUERY SELECT 'resumed';
    END IF;
END
$$;

REVOKE ALL ON FUNCTION set_gc_pause FROM PUBLIC;
GRANT EXECUTE ON FUNCTION set_gc_pause TO fenceline_service;
