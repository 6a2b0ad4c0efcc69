#!/bin/sh
# Runs IOR once, as the factors say, and nothing else: whoever calls this measures this window.
trap 'echo $? >"$HOME/test-exit-status"' EXIT
# shellcheck source=factors.sh
. "$HOME/factors.sh"
# shellcheck source=../common/mpi-io.sh
. "$HOME/mpi-io.sh"
# shellcheck source=../common/mpi.sh
. "$HOME/mpi.sh"

ior=$(sed -n 's/^path=//p' "$HOME/tool.conf")
make_output
prepared
[ "$(cat eeio-ior.ready 2>/dev/null)" = "$marker" ] ||
	refuse "$scratch: no prefilled files for these factors; run pre.sh with them first"

# -E: the file is there already and is written over, not made anew; but with HDF5 IOR always empties
# it first, so that such writes allocate.
if [ "$operation" = write ]; then set -- -w -E; else set -- -r; fi
case $operation-$flush in
write-end) set -- "$@" -e ;;
write-each) set -- "$@" -Y ;;
esac
# shellcheck disable=SC2086 # $words is words
set -- $words "$@"
# In a shell of its own: launch replaces it, and PTS's exit status is written after it.
if [ -z "${LOG_FILE:-}" ]; then
	(launch "$processes" "$ior" "$@")
	exit
fi
(launch "$processes" "$ior" "$@") >"$output/stdout.txt" 2>"$output/stderr.txt"
status=$?
{
	cat "$output/stdout.txt" "$output/stderr.txt"
	awk '/^(write|read) +[0-9.]+ / && !seen[$1]++ {
		printf "EEIO %s bandwidth: %.3f MB/s\n", $1, $2 * 1.048576 }' "$output/stdout.txt"
} >>"$LOG_FILE"
exit $status
