-- A publication is written once: as the next version of its report, under a fence that may, with an object
-- whose bytes are there. Nothing of it changes afterwards.
CREATE OR REPLACE FUNCTION guard_publication() RETURNS trigger
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
DECLARE
    v_wrong  text;
    v_status text;
    r       report%ROWTYPE;
BEGIN
    SELECT * INTO r FROM report WHERE report_id = NEW.report_id;
    SELECT status INTO v_status
    FROM judge_fence(r, NEW.fence_epoch, NEW.fence_counter, (SELECT max(floor_epoch) FROM epoch), NEW.published_at);
    IF TG_OP = 'UPDATE' THEN
        -- Only whether it is held, and that it was erased, which is for ever.
        IF to_jsonb(NEW) - ARRAY['held_at', 'held_by', 'erased_at', 'erased_by', 'erase_reason']
           <> to_jsonb(OLD) - ARRAY['held_at', 'held_by', 'erased_at', 'erased_by', 'erase_reason']
           OR OLD.erased_at IS DISTINCT FROM NEW.erased_at AND OLD.erased_at IS NOT NULL THEN
            v_wrong := 'a publication is never changed; publish another version';
        END IF;
    ELSIF NEW.version IS DISTINCT FROM r.version + 1 THEN
        v_wrong := format('the next version is %s', r.version + 1);
    ELSIF v_status IS NOT NULL THEN
        v_wrong := format('fence %s.%s may not publish now: %s (accepted %s.%s, granted %s.%s, barred %s.%s)',
            NEW.fence_epoch, NEW.fence_counter, v_status, r.accepted_epoch, r.accepted_counter,
            r.granted_epoch, r.granted_counter, r.barred_epoch, r.barred_counter);
    ELSIF NEW.object_id IS NOT NULL AND NOT EXISTS (
        SELECT FROM object
        WHERE (report_id, fence_epoch, fence_counter, object_id) = (NEW.report_id, NEW.object_epoch, NEW.object_counter, NEW.object_id)
          AND (state, key, size, sha256) = ('sealed', NEW.object_key, NEW.size, NEW.sha256)) THEN
        v_wrong := 'its object is not sealed with that key, size and digest';
    END IF;
    IF v_wrong IS NOT NULL THEN
        RAISE EXCEPTION 'fenceline: version % of report "%" cannot be written so: %', NEW.version, NEW.report_id, v_wrong
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END
$$;
REVOKE ALL ON FUNCTION guard_publication FROM PUBLIC;

CREATE OR REPLACE TRIGGER guard_write BEFORE INSERT OR UPDATE ON publication FOR EACH ROW EXECUTE FUNCTION guard_publication();
ALTER TABLE publication ENABLE ALWAYS TRIGGER guard_write;
