#!/bin/sh
# Runs roles.sql as the superuser, on the server that PGHOST names.
set -eu
PGPASSWORD=$(cat /run/secrets/postgres-superuser)
export PGPASSWORD
exec psql --no-psqlrc --quiet --username postgres --dbname postgres --file /etc/fenceline/roles.sql
