#!/bin/sh
# Runs one of db_bench's workloads once, as the factors say, and nothing else: whoever calls this
# measures this window.
trap 'echo $? >"$HOME/test-exit-status"' EXIT
# shellcheck source=factors.sh
. "$HOME/factors.sh"

make_output
prepared
ready=eeio-rocksdb.ready
[ -f "$ready" ] || refuse "$scratch/$ready: not there; run pre.sh with these factors first"
case $workload in
read*)
	[ "$(cat "$ready")" = "$keys $value_size" ] ||
		refuse "$scratch/$ready: of another database; run pre.sh with these factors first"
	;;
esac
# Only what reads alone leaves the database for another run.
[ "$workload" = readrandom ] || : >"$ready"

run() {
	rm -f "$output/eeio.json"
	"$python" -I -S "$HOME/workload.py" run db_bench="$db_bench" database="$scratch/eeio-rocksdb.db" \
		keys="$keys" value_size="$value_size" operations="$operations" threads="$processes" \
		workload="$workload" sync="$sync" runtime_s="$runtime_s" seed="${EEIO_RUN_SEED:-1}" \
		eeio="$output/eeio.json"
}

# shellcheck source=../common/rates.sh
. "$HOME/rates.sh"
