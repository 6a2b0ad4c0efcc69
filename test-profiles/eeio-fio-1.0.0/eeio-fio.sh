#!/bin/sh
# Runs fio once, as the factors say, and nothing else: whoever calls it measures this window.
trap 'echo $? >"$HOME/test-exit-status"' EXIT
# shellcheck source=factors.sh
. "$HOME/factors.sh"

fio=$(sed -n 's/^path=//p' "$HOME/tool.conf")
make_output
case $spatiality-$operation in
random-mixed) pattern=randrw ;;
random-*) pattern=rand$operation ;;
*-mixed) pattern=rw ;;
*) pattern=$operation ;;
esac
set -- --name=eeio-fio --bs="$request_size_bytes" \
	--numjobs="$processes" --group_reporting --size="$share_bytes" --runtime="$runtime_s" \
	--overwrite=1 --invalidate=1 --lat_percentiles=1 --clat_percentiles=0 --eta=never \
	--output-format=json+ --output="$output/fio.json" \
	--write_bw_log="$output/fio" --write_lat_log="$output/fio" --log_avg_msec=500
if [ "$spatiality" = strided ]; then
	# Once through the file in steps of stride requests, then the end: fio would start over
	# at the same blocks.
	steps=$((share_bytes / (stride * request_size_bytes)))
	set -- "$@" --rw="$pattern:$(((stride - 1) * request_size_bytes))" --io_size=$((steps * request_size_bytes))
else
	set -- "$@" --rw="$pattern" ${read_share:+--rwmixread="$read_share"}
fi
set -- "$@" --direct="$direct"
offered=$(load_options) || exit 2
# shellcheck disable=SC2046,SC2086 # words without spaces
set -- "$@" $(request_options) $flush_option $offered
if [ -n "${EEIO_RUN_SEED:-}" ]; then
	number EEIO_RUN_SEED "$EEIO_RUN_SEED" 0 999999999999999999
	set -- "$@" --randseed="$EEIO_RUN_SEED"
fi
if [ -n "$device" ]; then
	# shellcheck disable=SC2086 # words without spaces
	set -- "$@" --filename="$fio_device" --offset_increment="$share_bytes" $zone_options
	[ "$operation" = read ] && set -- "$@" --readonly
else
	[ "$fio_engine" != io_uring_cmd ] || refuse "engine=io_uring_cmd: no device is named (EEIO_DEVICE)"
	prepared # fio splits a path at its colons
	[ "$(cat eeio-fio.ready 2>/dev/null)" = "$marker" ] ||
		refuse "$scratch: no prefilled file for these factors; run pre.sh with them first"
fi
case $(date +%N) in
'' | *[!0-9]*) refuse "this date prints no nanoseconds (busybox?), which are needed for the times of fio's I/O:" \
	"install the package coreutils" ;;
esac
# The stamps bracket the I/O; the second is late. fio redirects the output itself: the # ends it before.
export EEIO_FIO_START="$output/fio-start.txt" EEIO_FIO_END="$output/fio-end.txt"
rm -f "$EEIO_FIO_START" "$EEIO_FIO_END" "$output/fio.json" "$output/perf.csv"
# shellcheck disable=SC2016,SC2046 # words without spaces
$(counted_by "$output/perf.csv") "$fio" "$@" --exec_prerun='exec date +%s.%N >>"$EEIO_FIO_START" #' \
	--exec_postrun='exec date +%s.%N >>"$EEIO_FIO_END" #'
status=$?
# fio ends with 0 when it refuses to start.
[ -s "$output/fio.json" ] || [ $status != 0 ] || status=1
[ -z "$zone_options" ] || explain_empty_zones $status "$output/fio.json"
[ -z "${LOG_FILE:-}" ] || {
	cat "$output/fio.json"
	awk '/^      "(read|write)" : / { operation = $1; gsub(/"/, "", operation) }
	/^        "bw_bytes" : / && $3 + 0 > 0 {
		printf "EEIO %s bandwidth: %.3f MB/s\n", operation, $3 / 1e6 }
	/^        "iops" : / && $3 + 0 > 0 { printf "EEIO %s rate: %.3f IOPS\n", operation, $3 }
	/^        "lat_ns" : / { inside = 1 }
	inside && /"mean" : / { if ($3 + 0 > 0) printf "EEIO %s latency: %.3f us\n", operation, $3 / 1e3
		inside = 0 }' "$output/fio.json"
} >>"$LOG_FILE" 2>&1
exit $status
