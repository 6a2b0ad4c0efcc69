#!/bin/sh
# Removes the database, unless it is to serve further runs.
[ -n "${EEIO_KEEP_FILES:-}" ] && exit 0
scratch=${EEIO_DIRECTORY:-$HOME/scratch}/eeio-scratch
rm -rf "$scratch"/eeio-rocksdb.*
rmdir "$scratch" 2>/dev/null
exit 0
