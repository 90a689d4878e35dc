-- Makes o (or nothing, where it is NULL) the visible object of the report, as its next version, which it
-- returns. The version that thereby leaves the kept ones gives its object up, unless something else keeps it.
-- The object's row is always written, since the collector looks at nothing else to learn what is due.
-- The caller holds the report's row and all these objects' rows, and has judged the request.
CREATE OR REPLACE FUNCTION move_pointer(r report, o object, p_request jsonb, p_digest bytea, p_now timestamptz)
RETURNS publication
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    p       publication%ROWTYPE;
    dropped publication%ROWTYPE;
BEGIN
    UPDATE object
    SET eligible_at = NULL, unkept_at = NULL
    WHERE (report_id, fence_epoch, fence_counter, object_id)
        = (o.report_id, o.fence_epoch, o.fence_counter, o.object_id);

    INSERT INTO publication (report_id, version, fence_epoch, fence_counter, idempotency_key, request_digest,
                             object_epoch, object_counter, object_id, object_key, size, sha256, content_type, filename,
                             metadata, published_at, published_by)
    VALUES (r.report_id, r.version + 1, (p_request ->> 'epoch')::integer, (p_request ->> 'counter')::bigint,
            p_request ->> 'idempotency_key', p_digest,
            o.fence_epoch, o.fence_counter, o.object_id, o.key, o.size, o.sha256, o.content_type, o.filename,
            coalesce(nullif(p_request -> 'metadata', 'null'), '{}'), p_now, p_request ->> 'by')
    RETURNING * INTO p;

    UPDATE report
    SET version = version + 1,
        visible_epoch = o.fence_epoch, visible_counter = o.fence_counter, visible_object_id = o.object_id,
        accepted_epoch = (p_request ->> 'epoch')::integer, accepted_counter = (p_request ->> 'counter')::bigint
    WHERE report_id = r.report_id;

    -- The first that is older than the kept ones; with none kept, the one that was visible.
    SELECT * INTO dropped
    FROM publication
    WHERE report_id = r.report_id AND version < p.version AND object_id IS NOT NULL
    ORDER BY version DESC
    OFFSET (settings_of(r)).keep_versions
    LIMIT 1;
    PERFORM settle_object(dropped.report_id, dropped.object_epoch, dropped.object_counter, dropped.object_id, p_now);
    RETURN p;
END
$$;

REVOKE ALL ON FUNCTION move_pointer FROM PUBLIC;
