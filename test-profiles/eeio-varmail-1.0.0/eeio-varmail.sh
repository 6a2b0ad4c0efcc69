#!/bin/sh
# Runs the mail server's pattern once, as the factors say, and nothing else: whoever calls this measures
# this window.
trap 'echo $? >"$HOME/test-exit-status"' EXIT
# shellcheck source=factors.sh
. "$HOME/factors.sh"

mkdir -p "$output" || refuse "EEIO_OUTPUT_DIR=$output: cannot be made"
ready=$scratch/eeio-varmail.ready
[ "$(cat "$ready" 2>/dev/null)" = "$processes $files" ] ||
	refuse "$ready: not of a new tree with these factors; run pre.sh with these factors first"
# A run changes the tree.
: >"$ready"

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
