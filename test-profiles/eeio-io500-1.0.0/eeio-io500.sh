#!/bin/sh
# Runs IO500 once, as the factors say, and nothing else: whoever calls this measures this window.
trap 'echo $? >"$HOME/test-exit-status"' EXIT
# shellcheck source=factors.sh
. "$HOME/factors.sh"
# shellcheck source=../common/mpi-io.sh
. "$HOME/mpi-io.sh"
# shellcheck source=../common/mpi.sh
. "$HOME/mpi.sh"

make_output
prepared
[ "$(cat eeio-io500.ready 2>/dev/null)" = "$marker" ] ||
	refuse "$scratch: not prepared for these factors; run pre.sh with them first"
results=$scratch/eeio-io500/results
# The arrival of a phase's line is the end of its window, so each line must leave IO500 at once.
buffering=''
! command -v stdbuf >/dev/null || buffering='stdbuf -oL'

run() {
	# shellcheck disable=SC2086 # words
	(launch "$processes" $buffering "$io500" "$scratch/eeio-io500.ini")
	status=$?
	[ -z "$ini" ] || echo "IO500's ini file: $ini" >>"$output/notes.txt"
	mkdir -p "$output/io500" && cp "$results"/*.txt "$results/config.ini" "$output/io500/" 2>/dev/null
	for file in "$results"/mdtest-*.csv "$results/find.csv"; do # of all ranks, then a line of each
		[ ! -f "$file" ] || head -n 2 "$file" >"$output/io500/${file##*/}"
	done
	[ $status = 0 ] || {
		why=$(sed -n 's/^; ERROR //p' "$results/result.txt" 2>/dev/null | grep -v '^INVALID' | tail -n 1)
		[ "$(df -Pk "$scratch" | awk 'NR == 2 { print $4 }')" -gt 1024 ] || why="$scratch is full"
		echo "$tool: IO500 stopped with exit code $status${why:+: $why}; its output is in $output" >&2
	}
	return $status
}

if [ -z "${LOG_FILE:-}" ]; then
	run
	exit
fi
run >"$output/stdout.txt" 2>"$output/stderr.txt"
status=$?
{
	cat "$output/stdout.txt" "$output/stderr.txt"
	awk '/^\[RESULT\] .* GiB\/s : time / { printf "EEIO %s bandwidth: %.3f MB/s\n", $2, $3 * 1073.741824 }
		/^\[RESULT\] .* kIOPS : time / { printf "EEIO %s rate: %.3f Operations/s\n", $2, $3 * 1000 }' \
		"$output/stdout.txt"
} >>"$LOG_FILE"
exit $status
