-- What is due by another time than when the brake held it back is not what an operator was shown: it is sealed, published,
-- or kept for longer since, and when it is due again the brake decides anew.
CREATE OR REPLACE FUNCTION end_hold_back() RETURNS trigger
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
BEGIN
    NEW.held_back_run := NULL;
    RETURN NEW;
END
$$;
REVOKE ALL ON FUNCTION end_hold_back FROM PUBLIC;

CREATE OR REPLACE TRIGGER end_hold_back BEFORE UPDATE ON object FOR EACH ROW
    WHEN (OLD.held_back_run IS NOT NULL AND NEW.state IN ('reserved', 'sealed') AND NEW.eligible_at IS DISTINCT FROM OLD.eligible_at)
    EXECUTE FUNCTION end_hold_back();
ALTER TABLE object ENABLE ALWAYS TRIGGER end_hold_back;
