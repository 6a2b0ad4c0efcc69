#!/bin/sh
# Runs lmbench's micro-benchmarks once, and nothing else. Each prints its figures on stderr
# without saying whose they are, so its command goes before them after a `#`.
trap 'echo $? >"$HOME/test-exit-status"' EXIT
# shellcheck source=factors.sh
. "$HOME/factors.sh"

bin=$(sed -n 's/^directory=//p' "$HOME/tool.conf")
make_output
case $tests in *filesystem*)
	prepared
	cd eeio-lmbench 2>/dev/null || refuse "$scratch: not prepared; run pre.sh with these factors first" ;;
esac
# lmbench would search, sometimes without end, for the shortest time it can measure: 0.1 s
# always is enough, and at that length the overheads of its clock and loop do not show.
export ENOUGH=100000 TIMING_O=0 LOOP_O=0

status=0
part() { # PROGRAM ARGUMENT...
	echo "# $*" >&2
	program=$1
	shift
	# lat_fs ignores SIGTERM.
	timeout -k 5 300 "$bin/$program" "$@" || status=1
}
run() {
	for test in $tests; do
		case $test in
		memory)
			for what in rd wr cp; do part bw_mem -N "$repetitions" "${memory_mib}m" $what; done
			part lat_mem_rd -t -N 1 "$latency_mib" 128
			;;
		syscall) for what in null read write; do part lat_syscall -N "$repetitions" $what; done ;;
		filesystem)
			# A file is much slower than a load from memory: less time is enough.
			for size in 1024 10240; do ENOUGH=20000 part lat_fs -N "$repetitions" -s $size .; done
			;;
		esac
	done
	echo "# end" >&2
	return $status
}
if [ -z "${LOG_FILE:-}" ]; then
	run
	exit
fi
run >"$output/stdout.txt" 2>"$output/stderr.txt"
status=$?
{
	cat "$output/stderr.txt"
	awk '/^#/ { program = $2; what = $NF; next }
	program == "bw_mem" && NF == 2 { printf "EEIO memory %s bandwidth: %.3f MB/s\n", what, $2 }
	program == "lat_mem_rd" && NF == 2 { largest = $2 }
	/^Simple / { printf "EEIO system call %s latency: %.4f us\n", what, $3 }
	program == "lat_fs" && NF == 4 { printf "EEIO %s file creation: %.3f 1/s\n", $1, $3
		printf "EEIO %s file deletion: %.3f 1/s\n", $1, $4 }
	END { if (largest) printf "EEIO memory latency: %.3f ns\n", largest }' "$output/stderr.txt"
} >>"$LOG_FILE"
exit $status
