-- Brings a published object's eligible_at into line with what keeps it now: none while something does; once the
-- last reason has ended, the end of its retention, counted from then.
-- The caller holds the report's row and the object's, and has changed what may keep it.
CREATE OR REPLACE FUNCTION settle_object(p_report text, p_epoch integer, p_counter bigint, p_object text, p_now timestamptz) RETURNS void
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    r        report%ROWTYPE;
    o        object%ROWTYPE;
    v_unkept timestamptz;
BEGIN
    SELECT * INTO r FROM report WHERE report_id = p_report;
    SELECT * INTO o FROM object
    WHERE (report_id, fence_epoch, fence_counter, object_id) = (p_report, p_epoch, p_counter, p_object);

    IF kept_as(r, p_epoch, p_counter, p_object) IS NULL THEN
        -- What had no end until now has been kept until now; and so may have been what a changed default keeps or kept, where
        -- the report has not followed it yet.
        v_unkept := CASE WHEN o.eligible_at IS NULL OR is_unsettled(r) THEN p_now ELSE coalesce(o.unkept_at, p_now) END;
    END IF;
    UPDATE object
    SET unkept_at = v_unkept, eligible_at = v_unkept + (settings_of(r)).retention_ms * interval '1 millisecond'
    WHERE (report_id, fence_epoch, fence_counter, object_id) = (p_report, p_epoch, p_counter, p_object)
      AND state = 'sealed';
END
$$;

REVOKE ALL ON FUNCTION settle_object FROM PUBLIC;
