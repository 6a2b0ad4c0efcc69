#!/bin/sh
# Runs BT-IO once, as the factors say, and nothing else: whoever calls this measures this window.
trap 'echo $? >"$HOME/test-exit-status"' EXIT
# shellcheck source=factors.sh
. "$HOME/factors.sh"
# shellcheck source=../common/mpi-io.sh
. "$HOME/mpi-io.sh"
# shellcheck source=../common/mpi.sh
. "$HOME/mpi.sh"

make_output
prepared

original() { # the user's own NPB, whose output eeio reads
	[ "$flush$cold$compute_ms$collective_buffer" = noneoff00 ] ||
		refuse "EEIO_NPB: the original has none of flush=end, cold, compute_ms and collective_buffer"
	program=$EEIO_NPB/bt.$class.$processes.mpi_io_$subtype
	[ -x "$program" ] || refuse "$program: not there; build it with NPB's \`make bt CLASS=$class NPROCS=$processes SUBTYPE=$subtype\`"
	check_own EEIO_NPB "$program"
	echo "${program##*/}, sha256 $(sha256sum <"$program" | cut -d' ' -f1)" >"$output/npb-program.txt"
	(launch "$processes" "$program") >"$output/npb.txt"
	status=$?
	cat "$output/npb.txt"
	# Its file stays for post.sh: what is deleted at once never reaches the device.
	return "$status"
}

own() {
	(launch "$processes" "$HOME/btio" ranks="$processes" class="$class" subtype="$subtype" flush="$flush" \
		compute_ms="$compute_ms" cold="$cold" collective_buffer="$collective_buffer_bytes" \
		directory=. eeio="$output/eeio.json")
}

run() {
	# Which of both ran is told by what lies here.
	rm -f "$output/npb.txt" "$output/eeio.json"
	if [ -n "${EEIO_NPB:-}" ]; then original; else own; fi
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
	awk 'function say(what, rate) { printf "EEIO %s bandwidth: %s MB/s\n", what, rate }
		/I\/O data rate/ { say("write", $NF) } /Read rate/ { say("read", $NF) }' "$output/stdout.txt"
} >>"$LOG_FILE"
exit $status
