# A zoned drive (ZNS, host-managed SMR): each zone is written from its begin, and reset before it is written
# again. Sourced by target.sh.
# shellcheck shell=sh disable=SC2034 # for the scripts
case $operation-$spatiality in
read-sequential | read-random | write-sequential) ;;
read-*) refuse "spatiality=$spatiality: $device is a zoned drive: a stride would meet the gaps at the ends of its zones" ;;
mixed-sequential) refuse "operation=mixed: $device is a zoned drive: the writes would reset the zones that are read" ;;
*) refuse "operation=$operation spatiality=$spatiality: $device is a zoned drive, which accepts only sequential writes in each zone" ;;
esac
[ "$engine" != mmap ] || refuse "engine=mmap: $device is a zoned drive, which requires direct I/O; give another engine"
zone_options=--zonemode=zbd
zone_bytes=$(($(cat "$queue/chunk_sectors") * 512))
[ "$request_size_bytes" -le "$zone_bytes" ] ||
	refuse "request_size=$request_size: more than a zone of $device, $zone_bytes bytes"
for limit in max_open_zones max_active_zones; do
	most=$(cat "$queue/$limit" 2>/dev/null)
	[ "$operation" = read ] || [ "${most:-0}" = 0 ] || [ "$processes" -le "$most" ] ||
		refuse "processes=$processes: each writes a zone, and $device has $limit=$most; give fewer processes"
done
share_bytes=$(((share_bytes + zone_bytes - 1) / zone_bytes * zone_bytes)) # whole zones for each process

if [ "${EEIO_ERASE:-}" = "$EEIO_DEVICE" ]; then
	PATH=$PATH:/usr/sbin:/sbin
	[ -n "$(command -v blkzone)" ] || refuse "$device is a zoned drive, and blkzone is missing: install the package util-linux"
	capacity_bytes=$(($(blkzone report -c 1 "$device" | sed -n '1s/.* cap \(0x[0-9a-f]*\).*/\1/p') * 512))
	[ "$operation" = read ] || [ $((capacity_bytes % request_size_bytes)) = 0 ] ||
		refuse "request_size=$request_size: does not divide the capacity of a zone of $device, $capacity_bytes bytes"
fi

zones() { # prints a line for each
	blkzone report -o 0 -l $((share_bytes * processes / 512)) "$device"
}

zones_are_full() { # conventional zones, (nw), have no write pointer
	found=$(zones) && ! echo "$found" | grep -v '(nw)' | grep -qv '(fu)'
}

reset_zones() {
	first=$(zones | grep -v '(nw)' | sed -n '1s/.*start: *\(0x[0-9a-f]*\).*/\1/p')
	# The campaign itself holds the device, which blkzone would respect.
	[ -z "$first" ] ||
		blkzone reset --force -o $((first)) -l $((share_bytes * processes / 512 - first)) "$device" ||
		{ echo "eeio-fio: blkzone (util-linux) cannot reset the zones of $device" >&2 && exit 1; }
}

explain_empty_zones() { # STATUS FILE, of fio and its output
	[ "$operation$1" != read0 ] || grep -q '"io_bytes" : [1-9]' "$2" ||
		echo "eeio-fio: no zone of $device was written before: nothing can be read; EEIO_ERASE=$device fills it" >&2
}
