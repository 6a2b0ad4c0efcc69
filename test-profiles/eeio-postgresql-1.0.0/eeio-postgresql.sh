#!/bin/sh
# Runs the transactions once, as the factors say, and nothing else: whoever calls this measures this window.
trap 'echo $? >"$HOME/test-exit-status"' EXIT
# shellcheck source=factors.sh
. "$HOME/factors.sh"

mkdir -p "$output" || refuse "EEIO_OUTPUT_DIR=$output: cannot be made"
[ "$(cat "$folder/made-by-eeio" 2>/dev/null)" = "scale=$scale" ] ||
	refuse "$folder: not there; run pre.sh with these factors first"

run() {
	rm -f "$output/eeio.json"
	workload run folder="$folder" bin="$programs" scale="$scale" clients="$clients" runtime_s="$runtime_s" \
		synchronous_commit="$synchronous_commit" fsync="$fsync" seed="${EEIO_RUN_SEED:-1}" \
		eeio="$output/eeio.json"
}

if [ -z "${LOG_FILE:-}" ]; then
	run
	exit
fi
run >"$output/stdout.txt" 2>"$output/stderr.txt"
status=$?
{
	cat "$output/stdout.txt" "$output/stderr.txt"
	awk '/^transactions bandwidth: [0-9.]+ MB\/s$/ { printf "EEIO %s bandwidth: %s MB/s\n", $1, $3 }
		/^transactions rate: [0-9.]+ / { printf "EEIO %s rate: %s Operations/s\n", $1, $3 }' \
		"$output/stdout.txt"
} >>"$LOG_FILE"
exit $status
