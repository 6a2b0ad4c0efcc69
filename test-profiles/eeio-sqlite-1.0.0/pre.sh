#!/bin/sh
# Outside the measured window: the table with its rows, anew for each run, since a run changes it. What
# a run that was killed left is removed.
# shellcheck disable=SC2015 # refuse leaves
# shellcheck source=factors.sh
. "$HOME/factors.sh"
mkdir -p "$scratch" 2>/dev/null && cd "$scratch" && [ -w . ] ||
	refuse "$scratch: cannot be written; give another directory"
rm -f eeio-sqlite.*
# A row takes 112 bytes of full pages and a transaction adds one; pages that were split are two thirds
# full. A journal or WAL is some thousand pages at most.
needed=$(((rows + transactions) * 168 + 16777216))
free=$(df -Pk . | awk 'NR == 2 { printf "%.0f", $4 * 1024 }')
[ "$free" -gt "$needed" ] || refuse "$scratch: needs $needed bytes, $free are free"
exec "$python" -I -S "$HOME/workload.py" fill database="$scratch/eeio-sqlite.db" rows="$rows"
