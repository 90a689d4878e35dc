-- Condemns an object that was never published, at its worker's wish. The fence in its name is its own
-- grant, so a worker that has become stale may clear up after itself; nothing is compared.
-- Status: discarded (also when repeated), object_in_use, object_not_found, frozen, epoch_in_doubt.
-- Locks: the barrier (shared), the report's row, the object's row: a publish of this object has either
-- committed before, or finds it condemned.
CREATE OR REPLACE FUNCTION discard(p_report text, p_epoch integer, p_counter bigint, p_object text, p_grace_ms bigint)
RETURNS TABLE (status text, state text)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_epoch integer;
    v_now   timestamptz;
    r       report%ROWTYPE;
    o       object%ROWTYPE;
BEGIN
    SELECT epoch INTO v_epoch FROM enter();
    IF v_epoch IS NULL THEN
        RETURN QUERY SELECT 'epoch_in_doubt', NULL;
        RETURN;
    END IF;
    r := lock_report(p_report);
    SELECT * INTO o FROM object
    WHERE (report_id, fence_epoch, fence_counter, object_id) = (p_report, p_epoch, p_counter, p_object)
    FOR UPDATE;
    v_now := fenceline_now();

    IF o.object_id IS NULL OR o.found_at IS NOT NULL THEN -- what a scan found is nobody's
        status := 'object_not_found';
    ELSIF is_frozen(p_report) THEN
        status := 'frozen';
    ELSIF is_published(p_report, p_epoch, p_counter, p_object) THEN
        status := 'object_in_use';
    ELSE
        status := 'discarded';
        state := o.state;
        IF o.state IN ('reserved', 'sealed') THEN
            PERFORM condemn_objects(ARRAY[o], ARRAY['discarded'], p_grace_ms, v_now);
            state := 'condemned';
        END IF;
    END IF;
    RETURN NEXT;
END
$$;

REVOKE ALL ON FUNCTION discard FROM PUBLIC;
GRANT EXECUTE ON FUNCTION discard TO fenceline_service;
