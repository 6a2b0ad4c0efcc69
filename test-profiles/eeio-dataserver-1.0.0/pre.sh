#!/bin/sh
# Outside the measured window: the emulator itself writes the servers' files, so that reads find
# stamped data and writes never allocate. Files that are ready are kept.
# shellcheck disable=SC2015,SC2086 # refuse leaves; $geometry is words
# shellcheck source=factors.sh
. "$HOME/factors.sh"
words=$*
set --
# shellcheck source=mpi-io.sh
. "$HOME/mpi-io.sh"
# shellcheck source=mpi.sh
. "$HOME/mpi.sh"

mkdir -p "$scratch" 2>/dev/null && cd "$scratch" && [ -w . ] ||
	refuse "$scratch: cannot be written; give another directory"
if [ "$(cat eeio-dataserver.ready 2>/dev/null)" != "$marker" ]; then
	rm -f eeio-dataserver.*
	# Every byte that the trace touches is written once.
	[ -z "$replay" ] || set -- replay="$replay" fill=on
	(launch "$processes" "$HOME/dataserver" ranks="$processes" operation=write $geometry flush=end "$@") >/dev/null || {
		echo "eeio-dataserver: prefilling $scratch failed" >&2
		exit 1
	}
	echo "$marker" >eeio-dataserver.ready
fi
# Reads start cold; where the caller drops all caches this finds nothing to do.
for file in eeio-dataserver.[0-9]*; do
	dd of="$file" oflag=nocache conv=notrunc,fdatasync count=0 2>/dev/null
done
calibrate $words
exit 0
