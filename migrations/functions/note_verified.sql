-- Writes down that a run has looked at all objects up to the one named, in the order of their key, and which of them are
-- not as they were published. Findings of earlier runs about objects that were passed are no longer present, whether they
-- were found anew or not; what only a reading can see is over only after a reading, or when the object is gone.
-- Without a position it shows that the run still lives; totals are what it has to look at in all, once that is known.
-- Status: noted, run_ended (it was written off, and must stop).
-- Locks: the advisory lock of begin_verify, so that runs of both kinds write one after the other; then the run.
CREATE OR REPLACE FUNCTION note_verified(p_run bigint, p_attempt integer,
    p_report text, p_epoch integer, p_counter bigint, p_object text,
    p_objects bigint, p_bytes bigint, p_total_objects bigint, p_total_bytes bigint, p_findings jsonb)
RETURNS TABLE (status text)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz;
    r     verify_run%ROWTYPE;
BEGIN
    PERFORM pg_advisory_xact_lock(x'46454e43'::integer, 3);
    SELECT * INTO r FROM verify_run
    WHERE verification_id = p_run AND attempt = p_attempt AND finished_at IS NULL
    FOR UPDATE;
    IF NOT FOUND THEN
        RETURN QUERY SELECT 'run_ended';
        RETURN;
    END IF;
    v_now := fenceline_now();
    IF p_report IS NULL THEN
        UPDATE verify_run
        SET beat_at = v_now, total_objects = coalesce(p_total_objects, total_objects), total_bytes = coalesce(p_total_bytes, total_bytes)
        WHERE verification_id = p_run;
        RETURN QUERY SELECT 'noted';
        RETURN;
    END IF;
    IF (p_report, p_epoch, p_counter, p_object) <= (r.at_report_id, r.at_epoch, r.at_counter, r.at_object_id) THEN
        RETURN QUERY SELECT 'noted'; -- the same again, whose first answer was lost
        RETURN;
    END IF;

    WITH found AS (
        SELECT * FROM jsonb_to_recordset(p_findings) AS f (report_id text, fence_epoch integer, fence_counter bigint, object_id text,
            key text, versions bigint[], visible boolean, fault text, needs_deep boolean, detail text,
            size bigint, sha256 text, etag text, version_id text, found_size bigint, found_sha256 text, found_etag text, found_version_id text)
    )
    INSERT INTO verify_finding
    SELECT p_run, f.report_id, f.fence_epoch, f.fence_counter, f.object_id, f.key, f.versions, f.visible, f.fault, f.needs_deep, f.detail,
           f.size, decode(f.sha256, 'hex'), f.etag, f.version_id, f.found_size, decode(f.found_sha256, 'hex'), f.found_etag, f.found_version_id,
           coalesce(before.first_at, v_now), v_now, false
    FROM found f
    LEFT JOIN verify_finding before
      ON before.present AND (before.report_id, before.fence_epoch, before.fence_counter, before.object_id)
       = (f.report_id, f.fence_epoch, f.fence_counter, f.object_id);

    PERFORM end_findings(r, p_report, p_epoch, p_counter, p_object);
    UPDATE verify_finding SET present = true
    WHERE verification_id = p_run
      AND (report_id, fence_epoch, fence_counter, object_id) > (r.at_report_id, r.at_epoch, r.at_counter, r.at_object_id);
    UPDATE verify_run
    SET beat_at = v_now, at_report_id = p_report, at_epoch = p_epoch, at_counter = p_counter, at_object_id = p_object,
        objects = objects + p_objects, bytes = bytes + p_bytes, faults = faults + jsonb_array_length(p_findings),
        total_objects = coalesce(p_total_objects, total_objects), total_bytes = coalesce(p_total_bytes, total_bytes)
    WHERE verification_id = p_run;
    RETURN QUERY SELECT 'noted';
END
$$;

REVOKE ALL ON FUNCTION note_verified FROM PUBLIC;
GRANT EXECUTE ON FUNCTION note_verified TO fenceline_service;
