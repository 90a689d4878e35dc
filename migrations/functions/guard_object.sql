-- An object goes reserved, sealed, condemned, deleted, and never back; its name and declaration never
-- change, its upload in parts not once it is known, its digest not once it is sealed; and what is visible is not condemned. What a scan
-- found may have the name of a version that is long collected: it is never sealed, and so never shown.
CREATE OR REPLACE FUNCTION guard_object() RETURNS trigger
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
DECLARE
    v_wrong text;
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.state <> 'reserved' THEN
            v_wrong := 'it begins as reserved, before its bytes are there';
        ELSIF NEW.found_at IS NULL AND is_published(NEW.report_id, NEW.fence_epoch, NEW.fence_counter, NEW.object_id) THEN
            v_wrong := 'a version goes by its name, and must never show other bytes';
        END IF;
    ELSIF (NEW.report_id, NEW.fence_epoch, NEW.fence_counter, NEW.object_id, NEW.prefix, NEW.content_type, NEW.filename,
        NEW.declared_size, NEW.declared_sha256, NEW.part_size, NEW.reserved_at, NEW.found_at)
       IS DISTINCT FROM
       (OLD.report_id, OLD.fence_epoch, OLD.fence_counter, OLD.object_id, OLD.prefix, OLD.content_type, OLD.filename,
        OLD.declared_size, OLD.declared_sha256, OLD.part_size, OLD.reserved_at, OLD.found_at) THEN
        v_wrong := 'its name and declaration may not change';
    ELSIF OLD.upload_id IS NOT NULL AND NEW.upload_id IS DISTINCT FROM OLD.upload_id THEN
        v_wrong := 'its upload in parts is known, and may not be exchanged';
    ELSIF OLD.sealed_at IS NOT NULL AND (NEW.size, NEW.sha256, NEW.etag, NEW.version_id, NEW.sealed_at)
          IS DISTINCT FROM (OLD.size, OLD.sha256, OLD.etag, OLD.version_id, OLD.sealed_at) THEN
        v_wrong := 'it is sealed: its bytes may not change';
    ELSIF NEW.state <> OLD.state AND (OLD.state, NEW.state) NOT IN
          (('reserved', 'sealed'), ('reserved', 'condemned'), ('sealed', 'condemned'), ('condemned', 'deleted')) THEN
        v_wrong := format('it may not go from %s to %s', OLD.state, NEW.state);
    ELSIF (NEW.state <> 'sealed' OR NEW.eligible_at IS NOT NULL) AND EXISTS (
        SELECT FROM report
        WHERE (report_id, visible_epoch, visible_counter, visible_object_id)
            = (NEW.report_id, NEW.fence_epoch, NEW.fence_counter, NEW.object_id)) THEN
        v_wrong := 'it is visible, and kept without limit';
    END IF;
    IF v_wrong IS NOT NULL THEN
        RAISE EXCEPTION 'fenceline: object "%" of report "%" cannot be written so: %', NEW.object_id, NEW.report_id, v_wrong
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END
$$;
REVOKE ALL ON FUNCTION guard_object FROM PUBLIC;

CREATE OR REPLACE TRIGGER guard_write BEFORE INSERT OR UPDATE ON object FOR EACH ROW EXECUTE FUNCTION guard_object();
ALTER TABLE object ENABLE ALWAYS TRIGGER guard_write;
