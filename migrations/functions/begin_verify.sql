-- Begins a look at the bytes of what is shown, or goes on with the last one that had the same options and did not come
-- to its end, unless p_restart. One is not gone on with if it has not moved for a week, or if the database is no longer the
-- one that it was begun on: another one, one that was restored, or one whose older epochs were closed.
-- A run that has not moved for p_silence_ms has died: it is written off, and should it wake, its next step is refused.
-- What is older than p_keep_ms is forgotten, but for the newest of each kind that was completed.
-- Status: started, resumed, already_running, epoch_in_doubt.
-- Locks: the barrier (shared), and an advisory lock of its own, under which all that is written here is.
CREATE OR REPLACE FUNCTION begin_verify(p_deep boolean, p_pattern text, p_from text, p_below text, p_restart boolean,
    p_by text, p_silence_ms bigint, p_keep_ms bigint)
RETURNS TABLE (status text, verification_id bigint, attempt integer)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_longest constant interval := interval '7 days';
    v_epoch integer;
    v_floor integer;
    v_now   timestamptz;
    r       verify_run%ROWTYPE;
BEGIN
    SELECT epoch, floor_epoch INTO v_epoch, v_floor FROM enter();
    IF v_epoch IS NULL THEN
        RETURN QUERY SELECT 'epoch_in_doubt', NULL::bigint, NULL::integer;
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock(x'46454e43'::integer, 3);
    v_now := fenceline_now();

    UPDATE verify_run
    SET finished_at = v_now, outcome = 'abandoned', error = 'it stopped moving'
    WHERE finished_at IS NULL
      AND (beat_at + p_silence_ms * interval '1 millisecond' <= v_now
           OR beat_at - p_silence_ms * interval '1 millisecond' >= v_now); -- the clock has stepped back
    SELECT * INTO r FROM verify_run WHERE finished_at IS NULL AND deep = p_deep;
    IF FOUND THEN
        RETURN QUERY SELECT 'already_running', r.verification_id, r.attempt;
        RETURN;
    END IF;

    DELETE FROM verify_run v
    WHERE finished_at <= v_now - p_keep_ms * interval '1 millisecond'
      AND verification_id NOT IN (SELECT max(verification_id) FROM verify_run WHERE outcome = 'completed' GROUP BY deep, pattern)
      -- what it has found is still so, as far as anybody has looked
      AND NOT EXISTS (SELECT FROM verify_finding f WHERE f.verification_id = v.verification_id AND f.present);

    SELECT * INTO r FROM verify_run WHERE (deep, pattern) = (p_deep, p_pattern) ORDER BY verification_id DESC LIMIT 1;
    IF NOT p_restart AND r.outcome <> 'completed' AND r.started_at > v_now - v_longest AND v_floor <= r.epoch
       AND (SELECT (system_identifier, timeline, database_oid) FROM epoch WHERE epoch = r.epoch)
         = (SELECT (system_identifier, timeline, database_oid) FROM epoch WHERE epoch = v_epoch) THEN
        RETURN QUERY
        UPDATE verify_run
        SET finished_at = NULL, outcome = NULL, error = NULL, beat_at = v_now, attempt = attempt + 1
        WHERE verification_id = r.verification_id
        RETURNING 'resumed', verification_id, attempt;
        RETURN;
    END IF;
    RETURN QUERY
    INSERT INTO verify_run (deep, pattern, range_below, started_by, started_at, epoch, beat_at, at_report_id)
    VALUES (p_deep, p_pattern, p_below, p_by, v_now, v_epoch, v_now, p_from)
    RETURNING 'started', verification_id, attempt;
END
$$;

REVOKE ALL ON FUNCTION begin_verify FROM PUBLIC;
GRANT EXECUTE ON FUNCTION begin_verify TO fenceline_service;
