-- Why an object is kept, or that it is due. The collector condemns by it, and whoever asks is told the
-- same. p_now is read after the report's row is held where something follows from the answer.
-- Verdict: kept (visible, held, kept_version, within_retention, frozen), put_off (live_lease), due (never_sealed,
-- never_published, superseded, unknown), condemned and deleted (with the reason of their condemnation). until: when that
-- may change, or for what is due, since when it is.
CREATE OR REPLACE FUNCTION judge_object(o object, r report, p_floor_epoch integer, p_now timestamptz,
    OUT verdict text, OUT reason text, OUT until timestamptz)
LANGUAGE plpgsql STABLE
SET search_path = public, pg_temp
AS $$
DECLARE
    -- Work in progress is kept while its lease lives, but not for ever.
    v_longest constant interval := interval '7 days';
    v_published boolean;
    v_retention bigint := (settings_of(r)).retention_ms;
    v_unkept    timestamptz;
BEGIN
    IF o.state IN ('condemned', 'deleted') THEN
        verdict := o.state;
        reason := o.condemned_reason;
        until := CASE o.state WHEN 'condemned' THEN o.purge_after END;
        RETURN;
    END IF;

    v_published := o.state = 'sealed' AND is_published(o.report_id, o.fence_epoch, o.fence_counter, o.object_id);
    until := o.eligible_at;
    IF v_published THEN
        -- By the settings as they are now, and not as they were when the time was noted. What a changed default keeps
        -- no longer, and no pass has settled yet, is unkept since the change.
        v_unkept := coalesce(o.unkept_at, (SELECT keep_changed_at FROM service_default));
        until := v_unkept + v_retention * interval '1 millisecond';
    END IF;
    -- What a scan found is kept for its whole retention, also from a floor on.
    until := greatest(coalesce(until, 'infinity'),
                      spared_until(p_floor_epoch, v_published OR o.found_at IS NOT NULL, coalesce(o.found_retention_ms, v_retention)));
    IF v_published THEN
        reason := kept_as(r, o.fence_epoch, o.fence_counter, o.object_id);
    END IF;
    IF reason IS NOT NULL THEN
        verdict := 'kept';
        until := NULL;
    ELSIF until > p_now THEN
        verdict := 'kept';
        reason := 'within_retention';
        until := nullif(until, 'infinity');
    ELSIF is_frozen(o.report_id) THEN
        verdict := 'kept';
        reason := 'frozen';
    ELSIF v_published THEN
        verdict := 'due';
        reason := 'superseded';
    ELSIF o.found_at IS NOT NULL THEN -- no lease works on it: nobody can publish it
        verdict := 'due';
        reason := 'unknown';
    ELSIF (o.fence_epoch, o.fence_counter) = (r.granted_epoch, r.granted_counter)
          AND lease_is_live(r, p_floor_epoch, p_now) AND p_now < o.reserved_at + v_longest THEN
        verdict := 'put_off';
        reason := 'live_lease';
        until := least(r.lease_expires_at, o.reserved_at + v_longest);
    ELSE
        verdict := 'due';
        reason := CASE o.state WHEN 'reserved' THEN 'never_sealed' ELSE 'never_published' END;
    END IF;
END
$$;

REVOKE ALL ON FUNCTION judge_object FROM PUBLIC;
