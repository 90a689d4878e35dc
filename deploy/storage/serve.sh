#!/bin/sh
# Runs the S3 server with the administrator of the secret storage-admin.
set -eu
set -a
. /run/secrets/storage-admin
set +a
exec versitygw --iam-dir /data/accounts posix /data/buckets
