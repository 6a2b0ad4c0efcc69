# The IOR that EEIO_IOR, PATH or scripts/setup has, or one that is built here (build.sh).
# shellcheck shell=sh disable=SC2034,SC2154 # install.sh uses and sets them
! find_program "${EEIO_IOR:-ior}" || path=$found
[ -n "$path" ] || [ -z "${EEIO_IOR:-}" ] || finish 1 "EEIO_IOR=$EEIO_IOR: not a program"
# This file is a link into the checkout, if there is one.
folder=$(readlink -f "$profile/tool.sh")
ours=${folder%/test-profiles/*}/.venv/bin/ior
[ -n "$path" ] || ! find_program "$ours" || path=$ours source=built
if [ -z "$path" ]; then
	# PTS puts a release file from its download cache into HOME.
	output=$(sh "$profile/build.sh" "$HOME/ior" "$HOME" 2>&1) || finish 1 "${output:-IOR was not built}"
	path=$HOME/ior source=built
fi
# IOR has no --version. The first line of a run has it, in 3.x the first line of its help.
version=$({ "$path" -h; timeout 60 "$path" -a DUMMY -b 1k -t 1k; } </dev/null 2>&1 |
	sed -n 's/^IOR-\([^:]*\):.*/\1/p' | head -n 1)
version=${version:-unknown}
# The interfaces, to know whether HDF5 is among them. With another EEIO_IOR eeio installs again.
more="apis=$("$path" -h 2>&1 | sed -n 's/.*API for I\/O \[\(.*\)\].*/\1/p' | head -n 1)
EEIO_IOR=${EEIO_IOR:-}"
