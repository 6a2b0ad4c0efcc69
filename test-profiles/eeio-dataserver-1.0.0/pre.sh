#!/bin/sh
# Outside the measured window: the emulator itself writes the servers' files, so that reads find
# stamped data and writes never allocate. Files that are ready are kept.
# shellcheck disable=SC2015,SC2086 # refuse leaves; $geometry is words
# shellcheck source=factors.sh
. "$HOME/factors.sh"
words=$*
set --
# shellcheck source=../common/mpi-io.sh
. "$HOME/mpi-io.sh"
# shellcheck source=../common/mpi.sh
. "$HOME/mpi.sh"

enter "$scratch"
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
drop_cached eeio-dataserver.[0-9]*
calibrate $words
exit 0
