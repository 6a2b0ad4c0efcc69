#!/bin/sh
# Runs the client once, as the factors say, and nothing else: whoever calls this measures this window.
trap 'echo $? >"$HOME/test-exit-status"' EXIT
# shellcheck source=factors.sh
. "$HOME/factors.sh"
need_store
make_output
prepared
[ -f eeio-s3.ready ] ||
	refuse "$scratch/eeio-s3.ready: not there; run pre.sh with these factors first"

run() {
	rm -f "$output/eeio.json"
	"$python" -I -S "$HOME/client.py" run endpoint="$endpoint" region="$region" size="$request_size_bytes" \
		objects="$objects" concurrency="$processes" seed="${EEIO_RUN_SEED:-1}" state="$state" \
		server="$server" eeio="$output/eeio.json"
}

# shellcheck source=../common/rates.sh
. "$HOME/rates.sh"
