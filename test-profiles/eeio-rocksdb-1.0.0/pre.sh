#!/bin/sh
# Outside the measured window: the database of what reads, with every key. What only reads leaves it as it
# is, and it is kept for the next. What a run that was killed left is removed.
# shellcheck disable=SC2015 # refuse leaves
# shellcheck source=factors.sh
. "$HOME/factors.sh"
enter "$scratch"
[ "$workload" = readrandom ] && [ "$(cat eeio-rocksdb.ready 2>/dev/null)" = "$keys $value_size" ] && exit 0
rm -rf eeio-rocksdb.*
# Logs, tables and what compaction holds at once; one that writes beside readers does for runtime_s.
most=$keys
case $workload in
fillrandom) [ "$operations" -le "$keys" ] || most=$operations ;;
esac
needed=$((3 * most * (value_size + 32) + 268435456))
[ "$workload" != readwhilewriting ] ||
	needed=$((needed + (runtime_s == 0 || runtime_s > 64 ? 64 : runtime_s) * 67108864))
need_bytes "$needed"
case $workload in
fill*)
	# So that the caller can see what lies behind the database.
	: >eeio-rocksdb.ready
	exit 0
	;;
esac
"$python" -I -S "$HOME/workload.py" fill db_bench="$db_bench" database="$scratch/eeio-rocksdb.db" \
	keys="$keys" value_size="$value_size" >/dev/null || exit
echo "$keys $value_size" >eeio-rocksdb.ready
