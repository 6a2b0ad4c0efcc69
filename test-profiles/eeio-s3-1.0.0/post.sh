#!/bin/sh
# Removes the test files, and a bucket that a killed run left, unless EEIO_KEEP_FILES keeps them for further runs.
[ -n "${EEIO_KEEP_FILES:-}" ] && exit 0
# shellcheck source=factors.sh
. "$HOME/factors.sh"
# The file stays if the object store cannot be reached: it names the bucket.
"$python" -I -S "$HOME/client.py" clean state="$state" || exit
[ -d "$scratch" ] || exit 0
prepared
rm -rf eeio-s3 eeio-s3.*
left
exit 0
