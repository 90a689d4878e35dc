-- Rows that carry a promise are not removed by hand. DELETE is left to forget(), which alone announces
-- itself, and only of what is final; TRUNCATE to nobody.
CREATE OR REPLACE FUNCTION guard_removal() RETURNS trigger
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
DECLARE
    v_final boolean := false;
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        RAISE EXCEPTION 'fenceline: % may not be truncated: its rows carry fences and versions that must not be forgotten', TG_TABLE_NAME
            USING ERRCODE = 'restrict_violation';
    END IF;
    IF current_setting('fenceline.forgetting', true) = 'on' THEN
        v_final := CASE TG_TABLE_NAME
            WHEN 'object' THEN to_jsonb(OLD) ->> 'state' = 'deleted'
            WHEN 'lease' THEN to_jsonb(OLD) ->> 'ended_at' IS NOT NULL
            ELSE false
        END;
    END IF;
    IF v_final THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'fenceline: a row of % may not be deleted (%): %', TG_TABLE_NAME,
        CASE TG_TABLE_NAME
            WHEN 'epoch' THEN format('epoch %s', to_jsonb(OLD) ->> 'epoch')
            ELSE format('report "%s"', to_jsonb(OLD) ->> 'report_id')
        END,
        CASE TG_TABLE_NAME
            WHEN 'report' THEN 'with it its fence would be forgotten, and a stale worker could publish'
            WHEN 'publication' THEN 'versions and their receipts are kept for ever'
            WHEN 'epoch' THEN 'an epoch that was ever used must stay known'
            WHEN 'lease' THEN 'an id whose record is gone could be granted again; the collector prunes ended leases'
            ELSE 'its bytes would be left in the bucket with nobody to collect them; discard it instead'
        END
        USING ERRCODE = 'restrict_violation';
END
$$;
REVOKE ALL ON FUNCTION guard_removal FROM PUBLIC;

DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['report', 'publication', 'lease', 'object', 'epoch'] LOOP
        EXECUTE format('CREATE OR REPLACE TRIGGER guard_delete BEFORE DELETE ON %I FOR EACH ROW EXECUTE FUNCTION guard_removal()', t);
        EXECUTE format('CREATE OR REPLACE TRIGGER guard_truncate BEFORE TRUNCATE ON %I FOR EACH STATEMENT EXECUTE FUNCTION guard_removal()', t);
        EXECUTE format('ALTER TABLE %I ENABLE ALWAYS TRIGGER guard_delete', t);
        EXECUTE format('ALTER TABLE %I ENABLE ALWAYS TRIGGER guard_truncate', t);
    END LOOP;
END
$$;
