#!/bin/sh
# Makes the service's account and the bucket that it owns; run again, it makes what
# is missing, and gives the account the secret, and the bucket the owner, that stand in
# the file now.
#
# STORAGE_ADMIN_URL is the server's administration, STORAGE_BUCKET the bucket.
set -eu
. /run/secrets/storage-admin
export ADMIN_ACCESS_KEY_ID="$ROOT_ACCESS_KEY_ID" ADMIN_SECRET_ACCESS_KEY="$ROOT_SECRET_ACCESS_KEY"

setting() { sed -n "s/^$1 *= *//p" /run/secrets/storage-service; }
access=$(setting aws_access_key_id)
secret=$(setting aws_secret_access_key)
admin() { versitygw admin --endpoint-url "$STORAGE_ADMIN_URL" "$@"; }

users=$(admin list-users)
if echo "$users" | grep -q "^$access "; then
	admin update-user --access "$access" --secret "$secret"
else
	admin create-user --access "$access" --secret "$secret" --role user
fi

buckets=$(admin list-buckets)
if echo "$buckets" | grep -q "^$STORAGE_BUCKET "; then
	admin change-bucket-owner --owner "$access" --bucket "$STORAGE_BUCKET"
else
	admin create-bucket --owner "$access" --bucket "$STORAGE_BUCKET"
fi
echo "the bucket $STORAGE_BUCKET is there, for $access"
