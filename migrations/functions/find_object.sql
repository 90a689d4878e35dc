-- The object that a publish asks for, and whether it may be made visible: one that was staged under the
-- fence of the request itself, or the one of an older version.
-- Status: NULL (it may), object_not_found, version_not_found, object_gone, needs_seal (its bytes have not
-- been looked at, or not in this epoch).
-- The caller holds the report's row and the object's.
CREATE OR REPLACE FUNCTION find_object(p_request jsonb, p_epoch integer, OUT status text, OUT o object)
LANGUAGE plpgsql STABLE
SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_report text   := p_request ->> 'report';
    v_from   bigint := (p_request ->> 'from_version')::bigint;
    p        publication%ROWTYPE;
BEGIN
    IF v_from IS NULL THEN
        SELECT * INTO o FROM object
        WHERE (report_id, fence_epoch, fence_counter, object_id)
            = (v_report, (p_request ->> 'epoch')::integer, (p_request ->> 'counter')::bigint, p_request ->> 'object_id');
    ELSE
        SELECT * INTO p FROM publication WHERE report_id = v_report AND version = v_from;
        IF p.version IS NULL THEN
            status := 'version_not_found';
            RETURN;
        END IF;
        SELECT * INTO o FROM object
        WHERE (report_id, fence_epoch, fence_counter, object_id)
            = (v_report, p.object_epoch, p.object_counter, p.object_id);
    END IF;

    IF p.object_id IS NOT NULL AND (o.found_at IS NOT NULL OR (o.key, o.size, o.sha256) IS DISTINCT FROM (p.object_key, p.size, p.sha256)) THEN
        status := 'object_gone'; -- collected so long ago that its tombstone is gone too, whatever a scan found there since
    ELSIF o.object_id IS NULL OR o.found_at IS NOT NULL THEN
        status := 'object_not_found';
    ELSIF o.state IN ('condemned', 'deleted') THEN
        status := 'object_gone';
    ELSIF o.state = 'reserved' OR o.checked_epoch < p_epoch THEN
        status := 'needs_seal';
    END IF;
END
$$;

REVOKE ALL ON FUNCTION find_object FROM PUBLIC;
