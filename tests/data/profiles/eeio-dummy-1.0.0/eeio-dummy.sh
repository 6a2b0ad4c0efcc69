#!/bin/sh
# Reads bytes_moved bytes, sleeps sleep_s, and claims them in that time; mode=fail|garbage|empty|orphan
# misbehaves, mode=noisy claims another bandwidth in each run, by its seed, mode=unread reads none.
set -eu
bandwidth=1000000
sleep_s=0.1 mode=good bytes_moved=0 operation=read spatiality=sequential
for word in "$@"; do
	case $word in
	sleep_s=* | mode=* | bytes_moved=* | operation=* | spatiality=*) eval "${word%%=*}=\${word#*=}" ;;
	level=* | request_size=* | buffer=* | cell=*) ;;
	*) echo "eeio-dummy: unknown factor $word" >&2; exit 2 ;;
	esac
done
case $mode in
fail) echo "dummy: cannot do it" >&2; exit 7 ;;
garbage) echo '{"schema_version": 1, "phases": [' > "$EEIO_OUTPUT_DIR/eeio.json"; exit 0 ;;
empty) exit 0 ;;
noisy) bandwidth=$((1000000 + EEIO_RUN_SEED % 200000)) ;;
orphan) sleep 1000 & echo $! > "$EEIO_OUTPUT_DIR/orphan" ;;
esac
if [ "$bytes_moved" != 0 ] && [ "$operation-$mode" = read-good ]; then
	blocks=$((bytes_moved / 4096 + 1)) file=$EEIO_OUTPUT_DIR/bytes
	dd if=/dev/zero of="$file" bs=4096 count="$blocks" conv=fsync 2>/dev/null
	# A file system in memory has no direct I/O, and no device that counts.
	dd if="$file" of=/dev/null bs=4096 iflag=direct 2>/dev/null || :
	rm "$file"
fi
# Seconds after boot: the monotonic clock, as long as the machine does not sleep.
start_s=$(cut -d ' ' -f 1 /proc/uptime)
sleep "$sleep_s"
end_s=$(cut -d ' ' -f 1 /proc/uptime)
[ "$bytes_moved" = 0 ] || bandwidth=$(awk "BEGIN { print $bytes_moved / ($end_s - $start_s) }")
cat > "$EEIO_OUTPUT_DIR/eeio.json" <<END
{"schema_version": 1, "context": [], "phases": [{"name": "$operation", "operation": "$operation",
"spatiality": "$spatiality", "request_size_bytes": 4096, "bytes_moved": $bytes_moved,
"start_monotonic_s": $start_s, "end_monotonic_s": $end_s, "bandwidth_bytes_per_s": $bandwidth,
"metrics": {}}]}
END
echo "dummy done"
