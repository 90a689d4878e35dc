-- What tells this database, at this moment of its life, from every copy and every past of it. (The
-- control file's timeline lags behind a promotion until the next checkpoint; the WAL's does not.)
CREATE OR REPLACE FUNCTION database_identity(
    OUT timeline text, OUT postmaster_started_at timestamptz, OUT database_oid oid, OUT report_filenode oid)
LANGUAGE sql STABLE
SET search_path = public, pg_temp
AS $$
    SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8),
           pg_postmaster_start_time(),
           (SELECT oid FROM pg_database WHERE datname = current_database()),
           pg_relation_filenode('report')
$$;

REVOKE ALL ON FUNCTION database_identity FROM PUBLIC;
