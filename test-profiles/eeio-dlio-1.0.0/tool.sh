# DLIO's program that EEIO_DLIO names, that of PATH, or the one that `eeio setup --ai` has installed.
# shellcheck shell=sh disable=SC2034,SC2154 # install.sh uses and sets them
remedy="run \`eeio setup --ai\`, or name the program dlio_benchmark by EEIO_DLIO"
! find_program "${EEIO_DLIO:-dlio_benchmark}" || path=$found
[ -n "$path" ] || [ -z "${EEIO_DLIO:-}" ] || finish 1 "EEIO_DLIO=$EEIO_DLIO: no such program; $remedy"
folder=$(readlink -f "$profile/tool.sh") # a link into the checkout, if there is one
ours=${folder%/test-profiles/*}/.venv/bin/dlio_benchmark
[ -n "$path" ] || ! find_program "$ours" || path=$ours
[ -n "$path" ] || finish 1 "DLIO is missing: $remedy"
path=$(readlink -f "$path")
# pip writes the Python of its environment into the first line.
python=$(sed -n '1s/^#![[:space:]]*//p' "$path")
find_program "$python" || finish 1 "$path: not a program of a Python environment; $remedy"
version=$(timeout 120 "$python" -I workload.py probe 2>build.log) ||
	finish 1 "$path cannot be used: $(tail -n 1 build.log)"
more="python=$python
EEIO_DLIO=${EEIO_DLIO:-}"
