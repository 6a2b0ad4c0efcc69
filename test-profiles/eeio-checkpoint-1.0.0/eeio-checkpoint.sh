#!/bin/sh
# Writes the checkpoints once, as the factors say, and nothing else: whoever calls this measures this
# window.
trap 'echo $? >"$HOME/test-exit-status"' EXIT
# shellcheck source=factors.sh
. "$HOME/factors.sh"
# shellcheck source=../common/mpi.sh
. "$HOME/mpi.sh"
# Called by mpi.sh: no MPI-IO is made here.
choose_io() { :; }

make_output
prepared
[ -f eeio-checkpoint.ready ] ||
	refuse "$scratch/eeio-checkpoint.ready: not there; run pre.sh with these factors first"

run() {
	rm -f "$output/eeio.json"
	# In a shell of its own, which mpirun replaces.
	(launch "$processes" "$HOME/checkpoint" ranks="$processes" size="$size_bytes" spread="$spread" \
		request_size="$request_size_bytes" interval_ms="$((interval_s * 1000))" checkpoints="$checkpoints" \
		compute="$compute" fsync="$fsync" directory=. eeio="$output/eeio.json")
}

if [ -z "${LOG_FILE:-}" ]; then
	run
	exit
fi
# In a subshell, which keeps no copy of the caller's output for what is started in it.
(run) >"$output/stdout.txt" 2>"$output/stderr.txt"
status=$?
{
	cat "$output/stdout.txt" "$output/stderr.txt"
	awk '/^checkpoint bandwidth: [0-9.]+ MB\/s$/ { printf "EEIO checkpoint bandwidth: %s MB/s\n", $3 }
		/^checkpoint rate: [0-9.]+ / { printf "EEIO checkpoint rate: %s Operations/s\n", $3 }' \
		"$output/stdout.txt"
} >>"$LOG_FILE"
exit $status
