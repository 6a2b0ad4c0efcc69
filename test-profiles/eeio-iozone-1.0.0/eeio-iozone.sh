#!/bin/sh
# Runs IOzone once, as the factors say, and nothing else: whoever calls it measures this window.
trap 'echo $? >"$HOME/test-exit-status"' EXIT
# shellcheck source=factors.sh
. "$HOME/factors.sh"

iozone=$(sed -n 's/^path=//p' "$HOME/tool.conf")
make_output
# Relative names keep the machine's paths out of IOzone's report.
prepared
[ "$test" = 0 ] || is_ready || refuse "$scratch: no prefilled file for these factors; run pre.sh with them first"

# -+n: no second pass; -w: keep the files.
set -- -i "$test" -+n -w -s $((share_bytes / 1024))k -r $((request_size_bytes / 1024))k
# -e: a write ends when its data are flushed. Without it IOzone flushes after it has taken the time.
# -o: each write by itself (O_SYNC).
case $flush in
end) set -- "$@" -e ;;
each) set -- "$@" -o ;;
esac
[ "$buffer" = on ] || set -- "$@" -I
[ "$test" != 5 ] || set -- "$@" -j "$stride"
if [ "$processes" = 1 ]; then
	set -- "$@" -f eeio-iozone.0
else
	# -x: every process moves its whole file, so the bytes are known.
	# shellcheck disable=SC2086
	set -- "$@" -t "$processes" -x -F $files
fi
if [ -z "${LOG_FILE:-}" ]; then
	"$iozone" "$@"
	exit
fi
"$iozone" "$@" >"$output/stdout.txt" 2>"$output/stderr.txt"
status=$?
# One row with a column a test (found by where it ends), or a block a test with -t, which has the
# sum of what each child saw and what their parent saw of all.
{
	cat "$output/stdout.txt" "$output/stderr.txt"
	awk 'function say(what, rate) { if (rate > 0) printf "EEIO %s bandwidth: %.3f MB/s\n", what, rate * 1.024e-3 }
	function column(end) { return substr($0, end - 8, 9) + 0 }
	row && NF > 2 { say("write", column(33)); say("read", column(51)); say("random read", column(69))
		say("random write", column(78)); say("strided read", column(107)) }
	{ row = /^ +kB +reclen / }
	/(Parent|Children) sees? throughput/ {
		what = /random readers/ ? "random read" : /random writers/ ? "random write" : \
			/stride readers/ ? "strided read" : /readers/ ? "read" : "write"
		if (/Children/) what = what " children"
		sub(/.*= */, ""); say(what, $1) }' "$output/stdout.txt"
} >>"$LOG_FILE"
exit $status
