#!/bin/sh
# Runs the mail server's pattern once, as the factors say, and nothing else: whoever calls this measures
# this window.
trap 'echo $? >"$HOME/test-exit-status"' EXIT
# shellcheck source=factors.sh
. "$HOME/factors.sh"

make_output
prepared
ready=eeio-varmail.ready
[ "$(cat "$ready" 2>/dev/null)" = "$processes $files" ] ||
	refuse "$scratch/$ready: not of a new tree with these factors; run pre.sh with these factors first"
# A run changes the tree.
: >"$ready"

run() {
	rm -f "$output/eeio.json"
	"$HOME/varmail" ranks="$processes" files="$files" loops="$loops" runtime_s="$runtime_s" \
		append="$append_bytes" fsync="$fsync" seed="${EEIO_RUN_SEED:-1}" directory=. \
		eeio="$output/eeio.json"
}

# shellcheck source=../common/rates.sh
. "$HOME/rates.sh"
