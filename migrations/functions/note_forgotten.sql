-- Writes down which tombstones a pass forgets, or in a dry run would. The caller holds the run's row.
CREATE OR REPLACE FUNCTION note_forgotten(p_run bigint, p_gone object[], p_now timestamptz) RETURNS void
LANGUAGE sql
SET search_path = public, pg_temp
AS $$
    SELECT note_batch(p_run, p_gone, array_agg('forgotten'::text), array_agg(condemned_reason ORDER BY ordinality),
                      array_agg(coalesce(size, declared_size) ORDER BY ordinality), p_now)
    FROM unnest(p_gone) WITH ORDINALITY
$$;

REVOKE ALL ON FUNCTION note_forgotten FROM PUBLIC;
