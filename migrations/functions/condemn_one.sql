-- Condemns one object if it is due and the brake allows it, and writes down what was decided.
-- Status: condemned, put_off, braked, skipped (not due any more).
-- The caller holds the run's row, the report's and the object's.
CREATE OR REPLACE FUNCTION condemn_one(p_run bigint, p_dry_run boolean, o object, r report, p_floor_epoch integer,
    p_grace_ms bigint, p_now timestamptz, OUT status text, OUT reason text)
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_size    bigint := coalesce(o.size, o.declared_size, 0);
    v_until   timestamptz;
    v_counted boolean;
    v_objects bigint;
    v_bytes   bigint;
BEGIN
    SELECT j.verdict, j.reason, j.until INTO status, reason, v_until FROM judge_object(o, r, p_floor_epoch, p_now) j;

    IF status = 'due' THEN
        status := 'condemned';
        -- What was superseded in the normal way does not count for the brake.
        v_counted := reason <> 'superseded';
        IF v_counted THEN
            SELECT CASE WHEN brake_used_objects < brake_min
                          OR brake_used_objects < brake_objects AND brake_used_bytes + v_size <= brake_bytes
                        THEN 'condemned' ELSE 'braked' END
            INTO status FROM gc_run WHERE run_id = p_run;
        END IF;
    ELSIF status = 'kept' AND v_until > p_now AND NOT p_dry_run THEN
        -- The setting has become longer since the time was noted.
        UPDATE object
        SET eligible_at = v_until
        WHERE (report_id, fence_epoch, fence_counter, object_id) = (o.report_id, o.fence_epoch, o.fence_counter, o.object_id);
    END IF;
    IF status NOT IN ('condemned', 'braked', 'put_off') THEN
        status := 'skipped';
        RETURN;
    END IF;

    IF NOT p_dry_run AND status = 'condemned' THEN
        PERFORM condemn_object(o, reason, p_grace_ms, p_now);
    ELSIF NOT p_dry_run AND status = 'put_off' THEN
        UPDATE object
        SET eligible_at = v_until
        WHERE (report_id, fence_epoch, fence_counter, object_id) = (o.report_id, o.fence_epoch, o.fence_counter, o.object_id);
    END IF;

    v_objects := (status = 'condemned')::integer;
    v_bytes := v_objects * v_size;
    UPDATE gc_run
    SET condemned = condemned + v_objects,
        condemned_bytes = condemned_bytes + v_bytes,
        put_off = put_off + (condemn_one.status = 'put_off')::integer,
        braked = braked + (condemn_one.status = 'braked')::integer,
        brake_used_objects = brake_used_objects + CASE WHEN v_counted THEN v_objects ELSE 0 END,
        brake_used_bytes = brake_used_bytes + CASE WHEN v_counted THEN v_bytes ELSE 0 END
    WHERE run_id = p_run;

    -- Of what is held back the first thousand are enough to see why: the rest would be written down pass by pass.
    IF status <> 'braked' OR (SELECT braked FROM gc_run WHERE run_id = p_run) <= 1000 THEN
        PERFORM note_in_ledger(p_run, o, status, reason, NULL, p_now);
    END IF;
END
$$;

REVOKE ALL ON FUNCTION condemn_one FROM PUBLIC;
