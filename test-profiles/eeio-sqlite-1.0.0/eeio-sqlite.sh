#!/bin/sh
# Runs the transactions and the lookups once, as the factors say, and nothing else: whoever calls this
# measures this window.
trap 'echo $? >"$HOME/test-exit-status"' EXIT
# shellcheck source=factors.sh
. "$HOME/factors.sh"

make_output
prepared
[ -f eeio-sqlite.db ] ||
	refuse "$scratch/eeio-sqlite.db: not there; run pre.sh with these factors first"

run() {
	rm -f "$output/eeio.json"
	"$python" -I -S "$HOME/workload.py" run database=eeio-sqlite.db journal="$journal" \
		synchronous="$synchronous" transactions="$transactions" rows="$rows" runtime_s="$runtime_s" \
		seed="${EEIO_RUN_SEED:-1}" eeio="$output/eeio.json"
}

# shellcheck source=../common/rates.sh
. "$HOME/rates.sh"
