-- Reserves an object under a fence, before any byte of it is uploaded, so that whatever is uploaded is
-- known from the start and goes if it is never published. Repeated with the same declaration it hands
-- out a further upload URL, while the object is still reserved. What is uploaded in parts has a part size, and tells
-- its upload in the storage once record_upload has written that down.
-- Status: reserved, reserved_again, object_id_reused, object_exists, stale_fence, fence_not_granted,
-- lease_not_live, frozen, report_not_found, epoch_in_doubt.
-- Locks: the barrier (shared), the report's row, the object's row.
CREATE OR REPLACE FUNCTION reserve(
    p_report text, p_epoch integer, p_counter bigint, p_object text, p_prefix text,
    p_content_type text, p_filename text, p_size bigint, p_sha256 bytea,
    p_upload_life_ms bigint, p_retention_ms bigint, p_by text,
    p_part_size bigint DEFAULT NULL) -- programs that know of no parts leave it out
RETURNS TABLE (status text, reason text, highest_epoch integer, highest_counter bigint,
               granted_epoch integer, granted_counter bigint, state text, key text, upload_id text)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_epoch integer;
    v_floor integer;
    v_now   timestamptz;
    r       report%ROWTYPE;
    o       object%ROWTYPE;
BEGIN
    SELECT epoch, floor_epoch INTO v_epoch, v_floor FROM enter();
    IF v_epoch IS NULL THEN
        status := 'epoch_in_doubt';
        RETURN NEXT;
        RETURN;
    END IF;
    r := lock_report(p_report);
    IF r.report_id IS NULL THEN
        status := 'report_not_found';
        RETURN NEXT;
        RETURN;
    END IF;
    v_now := fenceline_now();
    IF is_frozen(p_report) THEN
        status := 'frozen';
        RETURN NEXT;
        RETURN;
    END IF;

    SELECT * INTO status, reason, highest_epoch, highest_counter
    FROM judge_fence(r, p_epoch, p_counter, v_floor, v_now);
    IF status IS NOT NULL THEN
        granted_epoch := r.granted_epoch;
        granted_counter := r.granted_counter;
        IF status IN ('stale_fence', 'fence_not_granted') THEN
            PERFORM note_refusal(p_report, status, reason, p_epoch, p_counter, highest_epoch, highest_counter, p_by, v_now);
        END IF;
        RETURN NEXT;
        RETURN;
    END IF;

    SELECT * INTO o FROM object
    WHERE (report_id, fence_epoch, fence_counter, object_id) = (p_report, p_epoch, p_counter, p_object)
    FOR NO KEY UPDATE;

    IF o.object_id IS NULL AND is_published(p_report, p_epoch, p_counter, p_object) THEN
        -- Collected and forgotten; but a version still goes by its name, and must never show other bytes.
        status := 'object_exists';
    ELSIF o.object_id IS NULL THEN
        INSERT INTO object (report_id, fence_epoch, fence_counter, object_id, prefix, state, content_type, filename,
                            declared_size, declared_sha256, part_size, reserved_at, upload_until, eligible_at)
        VALUES (p_report, p_epoch, p_counter, p_object, p_prefix, 'reserved', p_content_type, p_filename,
                p_size, p_sha256, p_part_size, v_now, v_now + p_upload_life_ms * interval '1 millisecond',
                v_now + p_retention_ms * interval '1 millisecond')
        RETURNING * INTO o;
        status := 'reserved';
    ELSIF o.found_at IS NOT NULL THEN
        status := 'object_exists'; -- bytes that nobody reserved are under its key
    ELSIF (o.content_type, o.filename, o.declared_size, o.declared_sha256, o.part_size)
          IS DISTINCT FROM (p_content_type, p_filename, p_size, p_sha256, p_part_size) THEN
        status := 'object_id_reused';
    ELSIF o.state <> 'reserved' THEN
        status := 'object_exists';
    ELSE
        UPDATE object
        SET upload_until = greatest(upload_until, v_now + p_upload_life_ms * interval '1 millisecond'),
            eligible_at = greatest(eligible_at, v_now + p_retention_ms * interval '1 millisecond')
        WHERE (report_id, fence_epoch, fence_counter, object_id) = (p_report, p_epoch, p_counter, p_object);
        status := 'reserved_again';
    END IF;
    state := o.state;
    key := o.key;
    upload_id := o.upload_id;
    RETURN NEXT;
END
$$;

REVOKE ALL ON FUNCTION reserve FROM PUBLIC;
GRANT EXECUTE ON FUNCTION reserve TO fenceline_service;
