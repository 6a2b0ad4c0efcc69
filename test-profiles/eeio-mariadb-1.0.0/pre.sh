#!/bin/sh
# Outside the measured window: a database with sysbench's tables, anew for each run, since a run changes
# it. What a run that was killed left is removed.
# shellcheck disable=SC2015 # refuse leaves
# shellcheck source=factors.sh
. "$HOME/factors.sh"
enter "$scratch"
workload clear folder="$folder" server="$program" || exit
# An empty one takes 130 MiB, its log among them, and its undo logs grow. A row takes 250 bytes with its
# index; pages that were split are two thirds full.
needed=$((268435456 + rows * 4 * 400))
need_bytes "$needed"
workload fill folder="$folder" server="$program" rows="$rows"
