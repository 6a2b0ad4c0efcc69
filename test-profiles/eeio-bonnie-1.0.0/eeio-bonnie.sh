#!/bin/sh
# Runs Bonnie++ once, as the factors say, and nothing else: whoever calls it measures this window.
trap 'echo $? >"$HOME/test-exit-status"' EXIT
# shellcheck source=factors.sh
. "$HOME/factors.sh"

bonnie=$(sed -n 's/^path=//p' "$HOME/tool.conf")
make_output
prepared
cd eeio-bonnie 2>/dev/null || refuse "$scratch: not prepared; run pre.sh with these factors first"

# Not -q: the progress words on stderr tell when each phase began and ended.
# -r: half the file, so that Bonnie++ starts whatever the memory. -f: how many MiB a byte at a time,
# or none of them. -n 0: no small files.
set -- -d . -s "$size_mib:$request_size_bytes" -r $((size_mib / 2)) \
	"-f${characters_mib:-}" -n 0 -m eeio
[ "$buffer" = on ] || set -- "$@" -D
# It flushes at the end of each phase whatever it is told; -b: after every write, too.
[ "$flush" = end ] || set -- "$@" -b
[ "$(id -u)" != 0 ] || set -- "$@" -u root
if [ -n "${EEIO_RUN_SEED:-}" ]; then
	number EEIO_RUN_SEED "$EEIO_RUN_SEED" 0 999999999999999999
	set -- "$@" -z $((EEIO_RUN_SEED % 2147483648))
fi
if [ -z "${LOG_FILE:-}" ]; then
	"$bonnie" "$@"
	exit
fi
"$bonnie" "$@" >"$output/stdout.txt" 2>"$output/stderr.txt"
status=$?
# The CSV line: KiB/s of block writes, rewrites and reads, and seeks a second; `+++++` (too fast
# to measure) counts as 0 and is left out. With -D only the block write is direct (2.00a opens the
# file again without O_DIRECT), so nothing else of such a run may stand under `buffer=off`.
{
	cat "$output/stderr.txt" "$output/stdout.txt"
	awk -F, -v buffer="$buffer" 'function say(what, rate) { if (rate > 0) printf "EEIO %s bandwidth: %.3f MB/s\n", what, rate * 1.024e-3 }
	NF == 50 { say("write", $12) }
	NF == 50 && buffer == "on" { say("character write", $10); say("rewrite", $14)
		say("character read", $16); say("read", $18)
		if ($20 > 0) printf "EEIO seek rate: %.3f 1/s\n", $20 }' "$output/stdout.txt"
} >>"$LOG_FILE"
exit $status
