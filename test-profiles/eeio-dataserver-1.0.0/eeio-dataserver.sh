#!/bin/sh
# Runs the emulated data servers once, as the factors say, and nothing else: whoever calls this
# measures this window.
trap 'echo $? >"$HOME/test-exit-status"' EXIT
# shellcheck source=factors.sh
. "$HOME/factors.sh"
# shellcheck source=../common/mpi-io.sh
. "$HOME/mpi-io.sh"
# shellcheck source=../common/mpi.sh
. "$HOME/mpi.sh"

make_output
prepared
[ "$(cat eeio-dataserver.ready 2>/dev/null)" = "$marker" ] ||
	refuse "$scratch: no prefilled files for these factors; run pre.sh with them first"

offered=$(load_options) || exit 2
# shellcheck disable=SC2086 # $geometry and $offered are words
set -- $geometry $offered api="$api" pattern="$pattern" stride="$stride" direct="$direct" \
	flush="$flush" collective="$collective" runtime_s="$runtime_s" seed=1 \
	json="$output/dataserver.json" eeio="$output/eeio.json"
if [ -n "$replay" ]; then
	set -- "$@" replay="$replay" timed="$timed"
	[ "$replay" != "$HOME/hou10ni.csv" ] || cp "$replay" "$output/hou10ni.csv"
else
	set -- "$@" operation="$operation"
fi
ranks=$processes
if [ "$pace" != none ]; then
	# Clients are processes of their own, the last ranks: on the last hosts of a hostfile, whose power
	# is not the servers'.
	ranks=$((processes + clients))
	set -- "$@" pace="$pace" servers="$processes"
	[ -z "${EEIO_NODE_POWER:-}" ] || EEIO_NODE_POWER="--first-ranks $processes $EEIO_NODE_POWER"
fi
# In a shell of its own: launch replaces it, and PTS's exit status is written after it.
if [ -z "${LOG_FILE:-}" ]; then
	(launch "$ranks" "$HOME/dataserver" ranks="$ranks" "$@")
	exit
fi
(launch "$ranks" "$HOME/dataserver" ranks="$ranks" "$@") >"$output/stdout.txt" 2>"$output/stderr.txt"
status=$?
{
	cat "$output/stdout.txt" "$output/stderr.txt"
	awk -v what="$operation" '/ MB\/s$/ { printf "EEIO %s bandwidth: %s MB/s\n", what, $(NF - 1) }' \
		"$output/stdout.txt"
} >>"$LOG_FILE"
exit $status
