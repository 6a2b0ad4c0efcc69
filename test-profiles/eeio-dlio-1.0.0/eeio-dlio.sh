#!/bin/sh
# Runs DLIO once, as the factors say, and nothing else: whoever calls this measures this window.
trap 'echo $? >"$HOME/test-exit-status"' EXIT
# shellcheck source=factors.sh
. "$HOME/factors.sh"
# shellcheck source=samples.sh
. "$HOME/samples.sh"

make_output
prepared
is_ready ||
	refuse "$scratch: not prepared for these factors; run pre.sh with them first"

run() {
	rm -f "$output/eeio.json"
	dlio run output="$output/dlio" eeio="$output/eeio.json"
}

# shellcheck source=../common/rates.sh
. "$HOME/rates.sh"
