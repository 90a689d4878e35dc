-- Lets go what a run holds back: the next pass takes exactly these objects, without the brake, and judges each again. Of a run
-- that only reported, it lets the collector begin; what the run would have condemned is told then.
-- Status: approved, already_approved (with what was told then), not_found, under_way (it may hold back more), nothing_held_back,
-- epoch_in_doubt.
-- Locks: the barrier (shared), the run. No object: one that is due by another time meanwhile is not held back any more.
CREATE OR REPLACE FUNCTION approve_run(p_run bigint, p_by text)
RETURNS TABLE (status text, objects bigint, bytes bigint)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    g gc_run%ROWTYPE;
BEGIN
    IF (SELECT epoch FROM enter()) IS NULL THEN
        status := 'epoch_in_doubt';
        RETURN NEXT;
        RETURN;
    END IF;
    SELECT * INTO g FROM gc_run WHERE run_id = p_run; -- unlocked: while it is under way, its own steps hold it
    IF g.finished_at IS NOT NULL THEN
        SELECT * INTO g FROM gc_run WHERE run_id = p_run FOR UPDATE;
    END IF;
    IF g.run_id IS NULL THEN
        status := 'not_found';
    ELSIF g.approved_at IS NOT NULL THEN
        status := 'already_approved';
        objects := g.approved_objects;
        bytes := g.approved_bytes;
    ELSIF g.finished_at IS NULL THEN
        status := 'under_way';
    END IF;
    IF status IS NOT NULL THEN
        RETURN NEXT;
        RETURN;
    END IF;

    IF g.report_only THEN
        -- One that broke off has not shown all that it would do.
        UPDATE deployment SET collecting_since = fenceline_now() WHERE collecting_since IS NULL AND g.outcome = 'completed';
        status := CASE WHEN FOUND THEN 'approved' ELSE 'nothing_held_back' END;
        objects := g.condemned;
        bytes := g.condemned_bytes;
    ELSE
        SELECT count(*), coalesce(sum(coalesce(size, declared_size, 0)), 0) INTO objects, bytes
        FROM object
        WHERE held_back_run = p_run AND state IN ('reserved', 'sealed');
        status := CASE WHEN objects > 0 THEN 'approved' ELSE 'nothing_held_back' END;
    END IF;
    IF status = 'approved' THEN
        UPDATE gc_run
        SET approved_at = fenceline_now(), approved_by = p_by, approved_objects = objects, approved_bytes = bytes
        WHERE run_id = p_run;
    END IF;
    RETURN NEXT;
END
$$;

REVOKE ALL ON FUNCTION approve_run FROM PUBLIC;
GRANT EXECUTE ON FUNCTION approve_run TO fenceline_service;
