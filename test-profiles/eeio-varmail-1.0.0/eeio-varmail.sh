#!/bin/sh
# Runs the mail server's pattern once, as the factors say, and nothing else: whoever calls this measures
# this window.
trap 'echo $? >"$HOME/test-exit-status"' EXIT
# shellcheck source=factors.sh
. "$HOME/factors.sh"

mkdir -p "$output" || refuse "EEIO_OUTPUT_DIR=$output: cannot be made"
[ -d "$scratch/eeio-varmail.files" ] ||
	refuse "$scratch/eeio-varmail.files: not there; run pre.sh with these factors first"

run() {
	rm -f "$output/eeio.json"
	"$HOME/varmail" ranks="$processes" files="$files" loops="$loops" runtime_s="$runtime_s" \
		append="$append" fsync="$fsync" seed="${EEIO_RUN_SEED:-1}" directory="$scratch" \
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
	awk '/^mail bandwidth: [0-9.]+ MB\/s$/ { printf "EEIO mail bandwidth: %s MB/s\n", $3 }
		/^mail rate: [0-9.]+ / { printf "EEIO mail rate: %s Operations/s\n", $3 }' "$output/stdout.txt"
} >>"$LOG_FILE"
exit $status
