-- A grant's record changes once: when it ends. What has ended stays ended.
CREATE OR REPLACE FUNCTION guard_lease() RETURNS trigger
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
BEGIN
    IF OLD.ended_at IS NOT NULL THEN
        RAISE EXCEPTION 'fenceline: lease "%" of report "%" has ended and stays as it is', OLD.lease_id, OLD.report_id
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF (to_jsonb(NEW) - 'ended_at' - 'end_reason') <> (to_jsonb(OLD) - 'ended_at' - 'end_reason') THEN
        RAISE EXCEPTION 'fenceline: lease "%" of report "%" keeps the holder, ttl and fence that it was granted with', OLD.lease_id, OLD.report_id
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END
$$;
REVOKE ALL ON FUNCTION guard_lease FROM PUBLIC;

CREATE OR REPLACE TRIGGER guard_write BEFORE UPDATE ON lease FOR EACH ROW EXECUTE FUNCTION guard_lease();
ALTER TABLE lease ENABLE ALWAYS TRIGGER guard_write;
