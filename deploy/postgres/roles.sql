-- Makes the roles and the database, as the superuser; run again, it makes what is
-- missing, and gives the roles the passwords that stand in the files now.
\set ON_ERROR_STOP on
\set owner_password `cut -d: -f5 /run/secrets/owner.pgpass`
\set service_password `cut -d: -f5 /run/secrets/service.pgpass`

-- The owner migrates. It may create no roles, so the one that the migration grants to is made here.
SELECT 'CREATE ROLE fenceline LOGIN'
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'fenceline') \gexec
SELECT 'CREATE ROLE fenceline_service NOLOGIN'
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'fenceline_service') \gexec
-- The service's login has what fenceline_service has: it may read, and call the functions.
SELECT 'CREATE ROLE fenceline_app LOGIN IN ROLE fenceline_service'
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'fenceline_app') \gexec

ALTER ROLE fenceline PASSWORD :'owner_password';
ALTER ROLE fenceline_app PASSWORD :'service_password';

SELECT 'CREATE DATABASE fenceline OWNER fenceline'
WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = 'fenceline') \gexec
REVOKE ALL ON DATABASE fenceline FROM PUBLIC;
GRANT CONNECT ON DATABASE fenceline TO fenceline_service;
