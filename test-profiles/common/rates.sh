# The last lines of a profile's script, which defines `run`. Under PTS, which sets LOG_FILE, bandwidths
# and rates that the program printed become the lines that PTS reads.
# shellcheck shell=sh disable=SC2154
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
