#!/bin/sh
# Outside the measured window: nothing but room, for two generations. What a run that was killed left is
# removed.
# shellcheck disable=SC2015 # refuse leaves
# shellcheck source=factors.sh
. "$HOME/factors.sh"
mkdir -p "$scratch" 2>/dev/null && cd "$scratch" && [ -w . ] ||
	refuse "$scratch: cannot be written; give another directory"
rm -f eeio-checkpoint.*
needed=$((2 * processes * (size + 8192)))
free=$(df -Pk . | awk 'NR == 2 { printf "%.0f", $4 * 1024 }')
[ "$free" -gt "$needed" ] || refuse "$scratch: needs $needed bytes, $free are free"
# So that the caller can see what lies behind the files.
: >eeio-checkpoint.ready
