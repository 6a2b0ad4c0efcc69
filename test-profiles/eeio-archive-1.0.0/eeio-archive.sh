#!/bin/sh
# Archives or copies the tree once, as the factors say, and nothing else: whoever calls this measures
# this window.
trap 'echo $? >"$HOME/test-exit-status"' EXIT
# shellcheck source=factors.sh
. "$HOME/factors.sh"

make_output
prepared
[ "$(cat eeio-archive.ready 2>/dev/null)" = "$files" ] ||
	refuse "$scratch/eeio-archive.tree: not there; run pre.sh with these factors first"

run() {
	rm -f "$output/eeio.json"
	"$python" -I -S "$HOME/workload.py" run directory=. action="$action" copy="$copy" \
		eeio="$output/eeio.json"
}

# shellcheck source=../common/rates.sh
. "$HOME/rates.sh"
