#!/bin/sh
# Runs the transactions once, as the factors say, and nothing else: whoever calls this measures this window.
trap 'echo $? >"$HOME/test-exit-status"' EXIT
# shellcheck source=factors.sh
. "$HOME/factors.sh"

make_output
prepared
[ "$(cat "eeio-postgresql.data/made-by-eeio" 2>/dev/null)" = "scale=$scale" ] ||
	refuse "$folder: not there; run pre.sh with these factors first"

run() {
	rm -f "$output/eeio.json"
	workload run folder="$folder" bin="$programs" scale="$scale" clients="$clients" runtime_s="$runtime_s" \
		synchronous_commit="$synchronous_commit" fsync="$fsync" seed="${EEIO_RUN_SEED:-1}" \
		eeio="$output/eeio.json"
}

# shellcheck source=../common/rates.sh
. "$HOME/rates.sh"
