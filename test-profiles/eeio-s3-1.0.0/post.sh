#!/bin/sh
# Removes the test files, and a bucket that a killed run left, unless EEIO_KEEP_FILES keeps them for further runs.
[ -n "${EEIO_KEEP_FILES:-}" ] && exit 0
scratch=${EEIO_DIRECTORY:-$HOME/scratch}/eeio-scratch
if [ -f "$scratch/eeio-s3.bucket" ]; then
	# The file stays if the object store cannot be reached: it names the bucket.
	"$(sed -n 's/^python=//p' "$HOME/tool.conf")" -I -S "$HOME/client.py" clean state="$scratch/eeio-s3.bucket" || exit
fi
rm -rf "$scratch/eeio-s3" "$scratch"/eeio-s3.*
rmdir "$scratch" 2>/dev/null
exit 0
