-- Why a lease that is not live was lost. It had expired and nobody took it ("expired") until somebody
-- did ("superseded"); otherwise what was written down when it ended.
CREATE OR REPLACE FUNCTION lost_reason(l lease, r report, p_floor_epoch integer) RETURNS text
LANGUAGE sql IMMUTABLE
AS $$
    SELECT CASE
        WHEN coalesce(l.end_reason, 'expired') <> 'expired' THEN l.end_reason
        WHEN (r.granted_epoch, r.granted_counter) > (l.fence_epoch, l.fence_counter) THEN 'superseded'
        WHEN l.fence_epoch < p_floor_epoch THEN 'epoch_closed'
        ELSE 'expired'
    END
$$;

REVOKE ALL ON FUNCTION lost_reason FROM PUBLIC;
GRANT EXECUTE ON FUNCTION lost_reason TO fenceline_service;
