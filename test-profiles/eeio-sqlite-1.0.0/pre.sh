#!/bin/sh
# Outside the measured window: the table with its rows, anew for each run, since a run changes it. What
# a run that was killed left is removed.
# shellcheck disable=SC2015 # refuse leaves
# shellcheck source=factors.sh
. "$HOME/factors.sh"
enter "$scratch"
rm -f eeio-sqlite.*
# A row takes 112 bytes of full pages and a transaction adds one; pages that were split are two thirds
# full. A journal or WAL is some thousand pages at most.
needed=$(((rows + transactions) * 168 + 16777216))
need_bytes "$needed"
exec "$python" -I -S "$HOME/workload.py" fill database=eeio-sqlite.db rows="$rows"
