-- A publication that is not followed by its report's version would stop every later publish.
CREATE OR REPLACE FUNCTION guard_publication_follows() RETURNS trigger
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM report WHERE report_id = NEW.report_id AND version >= NEW.version) THEN
        RAISE EXCEPTION 'fenceline: version % of report "%" cannot be written so: its report does not show it', NEW.version, NEW.report_id
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION guard_publication_follows FROM PUBLIC;

DROP TRIGGER IF EXISTS guard_follows ON publication;
CREATE CONSTRAINT TRIGGER guard_follows AFTER INSERT ON publication DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION guard_publication_follows();
ALTER TABLE publication ENABLE ALWAYS TRIGGER guard_follows;
