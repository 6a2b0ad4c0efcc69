#!/bin/sh
# Removes the test files, and a bucket that a killed run left, unless EEIO_KEEP_FILES keeps them for further runs.
[ -n "${EEIO_KEEP_FILES:-}" ] && exit 0
tool=eeio-s3
# shellcheck source=scratch.sh
. "$HOME/scratch.sh"
[ -d "$scratch" ] || exit 0
prepared
if [ -f eeio-s3.bucket ]; then
	# The file stays if the object store cannot be reached: it names the bucket.
	"$(sed -n 's/^python=//p' "$HOME/tool.conf")" -I -S "$HOME/client.py" clean state="$scratch/eeio-s3.bucket" || exit
fi
rm -rf eeio-s3 eeio-s3.*
left
exit 0
