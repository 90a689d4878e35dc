-- Writes down which upload in the storage is that of an object in parts, unless one is known already: of several
-- that were begun for one object, the first that is recorded is the object's. Answers that one.
-- Status: recorded (the given one, also when repeated), superseded (by the one that is answered), object_exists (it is not reserved any
-- more), object_not_found, frozen, epoch_in_doubt.
-- Locks: the barrier (shared), the report's row, the object's row, under which the first is found out.
CREATE OR REPLACE FUNCTION record_upload(p_report text, p_epoch integer, p_counter bigint, p_object text, p_upload_id text)
RETURNS TABLE (status text, upload_id text)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_epoch integer;
    o       object%ROWTYPE;
BEGIN
    SELECT epoch INTO v_epoch FROM enter();
    IF v_epoch IS NULL THEN
        status := 'epoch_in_doubt';
        RETURN NEXT;
        RETURN;
    END IF;
    PERFORM lock_report(p_report);
    SELECT * INTO o FROM object
    WHERE (report_id, fence_epoch, fence_counter, object_id) = (p_report, p_epoch, p_counter, p_object)
    FOR NO KEY UPDATE;

    IF o.object_id IS NULL OR o.part_size IS NULL OR o.found_at IS NOT NULL THEN
        status := 'object_not_found';
    ELSIF is_frozen(p_report) THEN
        status := 'frozen';
    ELSIF o.state <> 'reserved' THEN
        status := 'object_exists';
    ELSIF o.upload_id <> p_upload_id THEN
        status := 'superseded';
        upload_id := o.upload_id;
    ELSE
        UPDATE object
        SET upload_id = p_upload_id
        WHERE (report_id, fence_epoch, fence_counter, object_id) = (p_report, p_epoch, p_counter, p_object);
        status := 'recorded';
        upload_id := p_upload_id;
    END IF;
    RETURN NEXT;
END
$$;

REVOKE ALL ON FUNCTION record_upload FROM PUBLIC;
GRANT EXECUTE ON FUNCTION record_upload TO fenceline_service;
