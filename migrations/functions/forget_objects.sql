-- Forgets up to p_limit tombstones of objects that were deleted until p_before, and of which nothing was seen since, and writes each down; a dry run writes down all of
-- them, and removes none. Answers how many. The caller holds the run's row, and has announced to the guards that it forgets.
CREATE OR REPLACE FUNCTION forget_objects(p_run bigint, p_dry boolean, p_limit integer, p_before timestamptz, p_now timestamptz)
RETURNS bigint
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
DECLARE
    v_gone      object[];
    v_count     bigint := 0;
    v_after_at  timestamptz := '-infinity';
    v_after_key text := '';
BEGIN
    IF NOT p_dry THEN
        WITH gone AS (
            DELETE FROM object
            WHERE (report_id, fence_epoch, fence_counter, object_id) IN (
                SELECT report_id, fence_epoch, fence_counter, object_id
                FROM object
                WHERE state = 'deleted' AND deleted_at <= p_before AND leftover_at IS NULL
                ORDER BY deleted_at
                LIMIT p_limit
            )
            RETURNING object
        )
        SELECT array_agg(object ORDER BY (object).key) INTO v_gone FROM gone;
        PERFORM note_forgotten(p_run, v_gone, p_now);
        RETURN coalesce(cardinality(v_gone), 0);
    END IF;

    LOOP -- batch by batch, since all of them may be more than fits into an array
        SELECT array_agg(d.o ORDER BY (d.o).deleted_at, (d.o).key) INTO v_gone
        FROM (
            SELECT o
            FROM object o
            WHERE state = 'deleted' AND deleted_at <= p_before AND leftover_at IS NULL
              AND (deleted_at, key) > (v_after_at, v_after_key)
            ORDER BY deleted_at, key
            LIMIT p_limit
        ) d;
        EXIT WHEN v_gone IS NULL;
        PERFORM note_forgotten(p_run, v_gone, p_now);
        v_count := v_count + cardinality(v_gone);
        v_after_at := (v_gone[cardinality(v_gone)]).deleted_at;
        v_after_key := (v_gone[cardinality(v_gone)]).key;
    END LOOP;
    RETURN v_count;
END
$$;

REVOKE ALL ON FUNCTION forget_objects FROM PUBLIC;
