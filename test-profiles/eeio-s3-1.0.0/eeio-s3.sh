#!/bin/sh
# Runs the client once, as the factors say, and nothing else: whoever calls this measures this window.
trap 'echo $? >"$HOME/test-exit-status"' EXIT
# shellcheck source=factors.sh
. "$HOME/factors.sh"

mkdir -p "$output" || refuse "EEIO_OUTPUT_DIR=$output: cannot be made"
[ -f "$scratch/eeio-s3.ready" ] ||
	refuse "$scratch/eeio-s3.ready: not there; run pre.sh with these factors first"

run() {
	rm -f "$output/eeio.json"
	"$python" -I -S "$HOME/client.py" run endpoint="$endpoint" region="$region" size="$size" \
		objects="$objects" concurrency="$processes" seed="${EEIO_RUN_SEED:-1}" state="$state" \
		server="$server" eeio="$output/eeio.json"
}

if [ -z "${LOG_FILE:-}" ]; then
	run
	exit
fi
run >"$output/stdout.txt" 2>"$output/stderr.txt"
status=$?
{
	cat "$output/stdout.txt" "$output/stderr.txt"
	awk '/^[a-z]+ bandwidth: [0-9.]+ MB\/s$/ { printf "EEIO %s bandwidth: %s MB/s\n", $1, $3 }
		/^[a-z]+ rate: [0-9.]+ / { printf "EEIO %s rate: %s Operations/s\n", $1, $3 }' \
		"$output/stdout.txt"
} >>"$LOG_FILE"
exit $status
