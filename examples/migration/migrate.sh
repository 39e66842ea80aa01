#!/bin/sh
# Brings the database to version 7, once, however many copies of the service start at the same time.
set -eu
: "${PROVIDER:?the URL of the provider, such as redis://127.0.0.1:6379}"
: "${DATABASE:?the SQLite file}"
database=$(realpath "$DATABASE") # whole: another shop.db elsewhere is another database
cd "$(dirname "$0")"

# The program is told the epoch of the leadership under which it runs.
exec "${BATON:-baton}" once --provider "$PROVIDER" --node "${NODE:-$(hostname)-$$}" --keep 1h \
    "schema-7-$database" -- \
    sh -c 'sed "s/:epoch/$BATON_EPOCH/g" 0007-orders.sql | sqlite3 -bail "$1"' sh "$database"
