# Variables that follow from the factors. For factors.sh.
# shellcheck shell=sh disable=SC2034 # for the scripts
# The original does not flush; ours does by default.
if [ -z "$flush" ]; then
	flush=end
	[ -z "${EEIO_NPB:-}" ] || flush=none
fi
