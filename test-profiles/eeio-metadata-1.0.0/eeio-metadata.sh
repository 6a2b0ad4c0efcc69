#!/bin/sh
# Runs the creation of files once, as the factors say, and nothing else: whoever calls this measures
# this window.
# shellcheck disable=SC2031 # the shared files have a variable mode only in a subshell
trap 'echo $? >"$HOME/test-exit-status"' EXIT
# shellcheck source=factors.sh
. "$HOME/factors.sh"
# shellcheck source=../common/mpi-io.sh
. "$HOME/mpi-io.sh"
# shellcheck source=../common/mpi.sh
. "$HOME/mpi.sh"

make_output
prepared

set -- ranks="$processes" files="$files" rounds="$rounds" size="$size_bytes" fsync="$fsync" \
	layout="$layout" directory=. calls="$output/calls.csv" eeio="$output/eeio.json"

start() { # ARGUMENTS...
	if [ "$mode" = mpi ]; then
		# In a shell of its own, which mpirun replaces.
		(launch "$processes" "$HOME/metadata-mpi" "$@")
		return
	fi
	set -- "$HOME/metadata-fork" "$@"
	# As launch does: with the energy of this node.
	# shellcheck disable=SC2086 # words
	[ -z "${EEIO_NODE_POWER:-}" ] || set -- eeio meter node $EEIO_NODE_POWER -- "$@"
	"$@"
}

run() {
	start "$@" && return
	status=$?
	# The ranks of MPI cannot remove the files of those that died with them.
	rm -rf eeio-metadata.files
	return "$status"
}

if [ -z "${LOG_FILE:-}" ]; then
	run "$@"
	exit
fi
# In a subshell, which keeps no copy of the caller's output for what is started in it.
(run "$@") >"$output/stdout.txt" 2>"$output/stderr.txt"
status=$?
{
	cat "$output/stdout.txt" "$output/stderr.txt"
	awk '/^[a-z]+ rate: [0-9.]+ Files\/s$/ { printf "EEIO %s rate: %s Files/s\n", $1, $3 }' \
		"$output/stdout.txt"
} >>"$LOG_FILE"
exit $status
