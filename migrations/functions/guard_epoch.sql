-- Epochs only follow one another, and a floor is never lowered.
CREATE OR REPLACE FUNCTION guard_epoch() RETURNS trigger
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        RAISE EXCEPTION 'fenceline: epoch % is never changed; the next one begins with verify_epoch() or advance_epoch()', OLD.epoch
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF EXISTS (SELECT FROM epoch WHERE epoch >= NEW.epoch OR floor_epoch > NEW.floor_epoch) THEN
        RAISE EXCEPTION 'fenceline: epoch % with floor % would go back: both only rise', NEW.epoch, NEW.floor_epoch
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END
$$;
REVOKE ALL ON FUNCTION guard_epoch FROM PUBLIC;

CREATE OR REPLACE TRIGGER guard_write BEFORE INSERT OR UPDATE ON epoch FOR EACH ROW EXECUTE FUNCTION guard_epoch();
ALTER TABLE epoch ENABLE ALWAYS TRIGGER guard_write;
