-- Writes down what the storage was seen to hold under the object's key, and in which epoch it was seen.
-- From then on the object is these bytes and no others. It makes nothing visible, so it compares no fence.
-- Status: sealed, object_changed (it was sealed as other bytes), object_gone, object_not_found, frozen, epoch_in_doubt.
-- Locks: the barrier (shared), the report's row, the object's row.
CREATE OR REPLACE FUNCTION seal(
    p_report text, p_epoch integer, p_counter bigint, p_object text,
    p_size bigint, p_sha256 bytea, p_etag text, p_version_id text, p_retention_ms bigint)
RETURNS TABLE (status text, size bigint, sha256 bytea, etag text)
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
        status := 'epoch_in_doubt';
        RETURN NEXT;
        RETURN;
    END IF;
    r := lock_report(p_report);
    SELECT * INTO o FROM object
    WHERE (report_id, fence_epoch, fence_counter, object_id) = (p_report, p_epoch, p_counter, p_object)
    FOR NO KEY UPDATE;
    v_now := fenceline_now();

    IF o.object_id IS NULL OR o.found_at IS NOT NULL THEN -- what a scan found is nobody's
        status := 'object_not_found';
    ELSIF is_frozen(p_report) THEN
        status := 'frozen';
    ELSIF o.state IN ('condemned', 'deleted') THEN
        status := 'object_gone';
    ELSIF o.state = 'sealed' AND (o.size, o.sha256, o.etag, o.version_id)
          IS DISTINCT FROM (p_size, p_sha256, p_etag, p_version_id) THEN
        status := 'object_changed';
    ELSE
        UPDATE object
        SET state = 'sealed', size = p_size, sha256 = p_sha256, etag = p_etag, version_id = p_version_id,
            sealed_at = coalesce(sealed_at, v_now), checked_epoch = v_epoch,
            eligible_at = CASE WHEN o.state = 'reserved'
                               THEN greatest(eligible_at, v_now + p_retention_ms * interval '1 millisecond')
                               ELSE eligible_at END
        WHERE (report_id, fence_epoch, fence_counter, object_id) = (p_report, p_epoch, p_counter, p_object)
        RETURNING * INTO o;
        status := 'sealed';
    END IF;
    size := o.size;
    sha256 := o.sha256;
    etag := o.etag;
    RETURN NEXT;
END
$$;

REVOKE ALL ON FUNCTION seal FROM PUBLIC;
GRANT EXECUTE ON FUNCTION seal TO fenceline_service;
