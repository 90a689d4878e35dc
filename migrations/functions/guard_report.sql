-- Holds the report's row to the guarantees, whoever writes it: fences only rise, a new lease has a greater
-- fence, versions go up by one, and the pointer moves with a version that says the same.
CREATE OR REPLACE FUNCTION guard_report() RETURNS trigger
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
DECLARE
    v_wrong text;
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF (NEW.version, NEW.accepted_counter) <> (0, 0) OR NEW.visible_object_id IS NOT NULL THEN
            v_wrong := 'it begins with nothing published';
        END IF;
    ELSIF NEW.report_id <> OLD.report_id THEN
        v_wrong := 'its id may not change';
    ELSIF (NEW.granted_epoch, NEW.granted_counter) < (OLD.granted_epoch, OLD.granted_counter) THEN
        v_wrong := format('its granted fence may not go down from %s.%s to %s.%s: a fence would be granted twice',
            OLD.granted_epoch, OLD.granted_counter, NEW.granted_epoch, NEW.granted_counter);
    ELSIF (NEW.accepted_epoch, NEW.accepted_counter) < (OLD.accepted_epoch, OLD.accepted_counter) THEN
        v_wrong := format('its accepted fence may not go down from %s.%s to %s.%s: a stale publish would pass',
            OLD.accepted_epoch, OLD.accepted_counter, NEW.accepted_epoch, NEW.accepted_counter);
    ELSIF (NEW.barred_epoch, NEW.barred_counter) < (OLD.barred_epoch, OLD.barred_counter) THEN
        v_wrong := format('its barred fence may not go down from %s.%s to %s.%s: what was revoked would be valid again',
            OLD.barred_epoch, OLD.barred_counter, NEW.barred_epoch, NEW.barred_counter);
    ELSIF NEW.lease_id IS DISTINCT FROM OLD.lease_id AND NEW.lease_id IS NOT NULL
          AND (NEW.granted_epoch, NEW.granted_counter) = (OLD.granted_epoch, OLD.granted_counter) THEN
        v_wrong := 'a new lease needs a greater fence';
    ELSIF NEW.lease_id = OLD.lease_id AND NEW.lease_expires_at < OLD.lease_expires_at THEN
        v_wrong := 'a lease may not be shortened: its holder was promised the time (revoke it instead)';
    ELSIF NEW.version NOT IN (OLD.version, OLD.version + 1) THEN
        v_wrong := format('its version may only go up by one, from %s to %s and not to %s', OLD.version, OLD.version + 1, NEW.version);
    ELSIF NEW.version = OLD.version
          AND (NEW.visible_epoch, NEW.visible_counter, NEW.visible_object_id, NEW.accepted_epoch, NEW.accepted_counter)
          IS DISTINCT FROM (OLD.visible_epoch, OLD.visible_counter, OLD.visible_object_id, OLD.accepted_epoch, OLD.accepted_counter) THEN
        v_wrong := 'its visible pointer and accepted fence move only with a new version: publish it';
    ELSIF NEW.version > OLD.version AND NOT EXISTS (
        SELECT FROM publication p
        WHERE (p.report_id, p.version, p.fence_epoch, p.fence_counter)
            = (NEW.report_id, NEW.version, NEW.accepted_epoch, NEW.accepted_counter)
          AND (p.object_epoch, p.object_counter, p.object_id)
              IS NOT DISTINCT FROM (NEW.visible_epoch, NEW.visible_counter, NEW.visible_object_id)) THEN
        v_wrong := format('no publication of version %s shows that object under that fence: publish it', NEW.version);
    END IF;
    IF v_wrong IS NOT NULL THEN
        RAISE EXCEPTION 'fenceline: report "%" cannot be written so: %', NEW.report_id, v_wrong USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END
$$;
REVOKE ALL ON FUNCTION guard_report FROM PUBLIC;

CREATE OR REPLACE TRIGGER guard_write BEFORE INSERT OR UPDATE ON report FOR EACH ROW EXECUTE FUNCTION guard_report();
ALTER TABLE report ENABLE ALWAYS TRIGGER guard_write;
