#!/bin/sh
# Outside the measured window: a folder with room. Bonnie++ writes what it reads.
# shellcheck disable=SC2015 # refuse leaves
# shellcheck source=factors.sh
. "$HOME/factors.sh"

mkdir -p "$scratch/eeio-bonnie" 2>/dev/null && cd "$scratch/eeio-bonnie" && [ -w . ] ||
	refuse "$scratch: cannot be written; give another directory"
rm -f Bonnie.* # left by a run that was killed
needed=$((size_mib * 1048576))
free=$(df -Pk . | awk 'NR == 2 { printf "%.0f", $4 * 1024 }')
[ "$free" -gt "$needed" ] || refuse "$scratch: needs $needed bytes, $free are free"
