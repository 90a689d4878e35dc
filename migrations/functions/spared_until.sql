-- Until when a floor spares an object that would be due: what was staged or given up before the older epochs were
-- closed may be known by less than the whole truth, and is kept for its retention from then on. NULL: no floor was set. What a scan
-- found has a retention of its own, like what was published.
CREATE OR REPLACE FUNCTION spared_until(p_floor_epoch integer, p_published boolean, p_retention_ms bigint) RETURNS timestamptz
LANGUAGE sql STABLE
SET search_path = public, pg_temp
AS $$
    SELECT CASE WHEN p_published THEN began_at + p_retention_ms * interval '1 millisecond' ELSE staged_until END
    FROM epoch
    WHERE epoch = p_floor_epoch AND staged_until IS NOT NULL
$$;

REVOKE ALL ON FUNCTION spared_until FROM PUBLIC;
