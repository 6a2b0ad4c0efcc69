#!/bin/sh
# Runs the transactions once, as the factors say, and nothing else: whoever calls this measures this window.
trap 'echo $? >"$HOME/test-exit-status"' EXIT
# shellcheck source=factors.sh
. "$HOME/factors.sh"

make_output
prepared
[ "$(cat "eeio-mariadb.data/made-by-eeio" 2>/dev/null)" = "rows=$rows" ] ||
	refuse "$folder: not there; run pre.sh with these factors first"

run() {
	rm -f "$output/eeio.json"
	workload run folder="$folder" server="$program" rows="$rows" workload="$workload" clients="$clients" \
		runtime_s="$runtime_s" flush_log_at_trx_commit="$flush_log_at_trx_commit" buffer="$buffer" \
		seed="${EEIO_RUN_SEED:-1}" eeio="$output/eeio.json"
}

# shellcheck source=../common/rates.sh
. "$HOME/rates.sh"
