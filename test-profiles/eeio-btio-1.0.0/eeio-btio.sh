#!/bin/sh
# Runs BT-IO once, as the factors say, and nothing else: whoever calls this measures this window.
trap 'echo $? >"$HOME/test-exit-status"' EXIT
# shellcheck source=factors.sh
. "$HOME/factors.sh"
# shellcheck source=mpi.sh
. "$HOME/mpi.sh"

mkdir -p "$output" || refuse "EEIO_OUTPUT_DIR=$output: cannot be made"
cd "$scratch" 2>/dev/null || refuse "$scratch: not there; run pre.sh with these factors first"

original() { # the user's own NPB; it does not tell when its phases began
	program=$EEIO_NPB/bt.$class.$processes.mpi_io_$subtype
	[ -x "$program" ] || refuse "$program: not there; build it with NPB's \`make bt CLASS=$class NPROCS=$processes SUBTYPE=$subtype\`"
	(launch "$processes" "$program") >"$output/npb.txt"
	status=$?
	cat "$output/npb.txt"
	awk '/I\/O timing in seconds/ { s = $NF } /Total data written/ { mb = $NF } /SUCCESSFUL/ { good = 1 }
		END { if (s > 0) printf "{\"schema_version\": 1, \"phases\": [{\"name\": \"write\", " \
			"\"operation\": \"write\", \"spatiality\": \"strided\", \"request_size_bytes\": null, " \
			"\"bytes_moved\": %.0f, \"bandwidth_bytes_per_s\": %.3f, \"start_monotonic_s\": null, " \
			"\"end_monotonic_s\": null, \"metrics\": {\"io_time_s\": %s}, \"invalid\": [%s]}], " \
			"\"notes\": [\"the original NPB, from EEIO_NPB\"]}\n", \
			mb * 1e6, mb * 1e6 / s, s, good ? "" : "\"its verification failed\"" }' \
		"$output/npb.txt" >"$output/eeio.json"
	rm -f btio.*.out*
	return "$status"
}

own() {
	(launch "$processes" "$HOME/btio" ranks="$processes" class="$class" subtype="$subtype" fsync="$fsync" \
		compute_ms="$compute_ms" cold="$cold" collective_buffer="$collective_buffer" \
		directory="$scratch" eeio="$output/eeio.json")
}

run() {
	if [ -n "${EEIO_NPB:-}" ]; then original; else own; fi
}

if [ -z "${LOG_FILE:-}" ]; then
	run
	exit
fi
run >"$output/stdout.txt" 2>"$output/stderr.txt"
status=$?
{
	cat "$output/stdout.txt" "$output/stderr.txt"
	awk 'function say(what, rate) { printf "EEIO %s bandwidth: %s MB/s\n", what, rate }
		/I\/O data rate/ { say("write", $NF) } /Read rate/ { say("read", $NF) }' "$output/stdout.txt"
} >>"$LOG_FILE"
exit $status
