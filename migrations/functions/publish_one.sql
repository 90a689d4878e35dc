-- One publish, for publish(), which has locked the report and every object that this may touch. The
-- checks stand in the order in which the contract promises their answers.
-- Status: applied, duplicate, idempotency_key_reused, frozen, stale_fence, fence_not_granted, lease_not_live,
-- grant_already_used, expected_version_required, version_conflict, object_not_found, version_not_found,
-- object_gone, report_not_found; and needs_seal: the bytes have not been looked at yet, or not in this
-- epoch: seal, and publish again.
CREATE OR REPLACE FUNCTION publish_one(p_request jsonb, p_epoch integer, p_floor_epoch integer)
RETURNS TABLE (status text, reason text,
               highest_epoch integer, highest_counter bigint, granted_epoch integer, granted_counter bigint,
               expected_version bigint, actual_version bigint, visible boolean, receipt jsonb)
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_report   text    := p_request ->> 'report';
    v_epoch    integer := (p_request ->> 'epoch')::integer;
    v_counter  bigint  := (p_request ->> 'counter')::bigint;
    v_key      text    := p_request ->> 'idempotency_key';
    v_withdraw boolean := coalesce((p_request ->> 'withdraw')::boolean, false);
    -- What makes two requests the same: their decoded values, an absent one being null.
    v_digest   bytea   := sha256(convert_to(jsonb_strip_nulls(jsonb_build_object(
                              'epoch', v_epoch, 'counter', v_counter, 'object_id', p_request -> 'object_id',
                              'from_version', p_request -> 'from_version', 'withdraw', v_withdraw,
                              'expected_version', p_request -> 'expected_version',
                              'metadata', p_request -> 'metadata'))::text, 'UTF8'));
    v_now      timestamptz := fenceline_now();
    r          report%ROWTYPE;
    p          publication%ROWTYPE;
    o          object%ROWTYPE;
    f          record;
BEGIN
    SELECT * INTO r FROM report WHERE report_id = v_report;
    IF r.report_id IS NULL THEN
        status := 'report_not_found';
        RETURN NEXT;
        RETURN;
    END IF;
    granted_epoch := r.granted_epoch;
    granted_counter := r.granted_counter;
    actual_version := r.version;
    expected_version := (p_request ->> 'expected_version')::bigint;

    SELECT * INTO p FROM publication WHERE report_id = v_report AND idempotency_key = v_key;
    IF p.version IS NOT NULL THEN
        status := CASE WHEN p.request_digest = v_digest THEN 'duplicate' ELSE 'idempotency_key_reused' END;
        visible := p.version = r.version;
        receipt := receipt_of(p);
        RETURN NEXT;
        RETURN;
    END IF;

    IF is_frozen(v_report) THEN
        status := 'frozen';
        RETURN NEXT;
        RETURN;
    END IF;

    SELECT * INTO status, reason, highest_epoch, highest_counter
    FROM judge_fence(r, v_epoch, v_counter, p_floor_epoch, v_now);
    IF status IN ('stale_fence', 'fence_not_granted') THEN
        PERFORM note_refusal(v_report, status, reason, v_epoch, v_counter, highest_epoch, highest_counter, p_request ->> 'by', v_now);
    END IF;
    IF status IS NULL AND (v_epoch, v_counter) = (r.accepted_epoch, r.accepted_counter) THEN
        -- This grant has published before: its requests need an order among themselves.
        IF (settings_of(r)).publishes_per_grant = 'one' THEN
            status := 'grant_already_used';
        ELSIF expected_version IS NULL THEN
            status := 'expected_version_required';
        END IF;
    END IF;
    IF status IS NULL AND expected_version <> r.version THEN
        status := 'version_conflict';
    END IF;

    IF status IS NULL AND NOT v_withdraw THEN
        f := find_object(p_request, p_epoch);
        status := f.status;
        o := f.o;
    END IF;
    IF status IS NOT NULL THEN
        RETURN NEXT;
        RETURN;
    END IF;

    status := 'applied';
    visible := true;
    receipt := receipt_of(move_pointer(r, o, p_request, v_digest, v_now));
    RETURN NEXT;
END
$$;

REVOKE ALL ON FUNCTION publish_one FROM PUBLIC;
