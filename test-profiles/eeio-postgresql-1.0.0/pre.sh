#!/bin/sh
# Outside the measured window: a database with pgbench's tables, anew for each run, since a run changes
# it. What a run that was killed left is removed.
# shellcheck disable=SC2015 # refuse leaves
# shellcheck source=factors.sh
. "$HOME/factors.sh"
enter "$scratch"
workload clear folder="$folder" bin="$programs" || exit
# 64 MiB are an empty one. Of a scale, 16 MiB are rows and indexes; what is loaded, each page that is
# changed after it, and some 500 bytes a transaction go into the log, of which the server keeps about
# 1 GiB at most.
log=$((scale * 32 + runtime_s * 8))
needed=$(((64 + scale * 20 + (log < 1280 ? log : 1280)) * 1048576))
need_bytes "$needed"
workload fill folder="$folder" bin="$programs" scale="$scale"
