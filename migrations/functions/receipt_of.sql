-- The receipt of a publication, as the service passes it on. It is part of the answer of the same call
-- that made the publication: a second question might find the database away, and what was known would
-- become unknown.
CREATE OR REPLACE FUNCTION receipt_of(p publication) RETURNS jsonb
LANGUAGE sql STABLE
AS $$
    SELECT jsonb_build_object(
        'version', p.version, 'fence_epoch', p.fence_epoch, 'fence_counter', p.fence_counter,
        'object_epoch', p.object_epoch, 'object_counter', p.object_counter, 'object_id', p.object_id,
        'object_key', p.object_key, 'size', p.size, 'sha256', encode(p.sha256, 'hex'),
        'content_type', p.content_type, 'filename', p.filename,
        'metadata', p.metadata, 'idempotency_key', p.idempotency_key, 'published_at', p.published_at)
$$;

REVOKE ALL ON FUNCTION receipt_of FROM PUBLIC;
