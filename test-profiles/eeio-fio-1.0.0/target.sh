# What is read or written, and what may be erased. Sourced by factors.sh, which has set the factors.
# shellcheck shell=sh disable=SC2034,SC2154 # of factors.sh, and for those who source it
device='' zone_options=''
if [ "$level" = device ]; then
	[ "$buffer" = off ] || refuse "buffer=on: level=device is measured without the page cache; give buffer=off"
	device=${EEIO_DEVICE:-}
fi
if [ -n "$device" ]; then
	[ -b "$device" ] || refuse "EEIO_DEVICE=$device: not a block device"
	if [ "$operation" != read ] && [ "${EEIO_ERASE:-}" != "$device" ]; then
		refuse "operation=$operation would erase $device: set EEIO_ERASE=$device to allow it"
	fi
	if [ "${EEIO_ERASE:-}" = "$device" ]; then
		mounts=$(lsblk -nro MOUNTPOINT "$device") || refuse "$device: lsblk cannot determine whether it is mounted"
		[ -z "$(echo "$mounts" | tr -d ' \n')" ] || refuse "$device: mounted; unmount it and its partitions first"
	fi
	# Asked by its number: the node need not lie in /dev nor have the kernel's name.
	device_bytes=$(lsblk -bdnro SIZE "$device") || refuse "$device: lsblk cannot determine its size"
	queue=/sys/dev/block/$(lsblk -dnro MAJ:MIN "$device" | tr -d ' ')/queue
	device=$(readlink -f "$device")
	if [ "$(cat "$queue/zoned" 2>/dev/null)" = host-managed ]; then
		# A zone is written from its begin, or from its write pointer; fio resets full ones.
		[ "$operation" = read ] || [ "$spatiality" = sequential ] ||
			refuse "spatiality=$spatiality operation=$operation: $device is a zoned drive," \
				"which accepts only sequential writes in each zone"
		zone_options=--zonemode=zbd
		zone_bytes=$(($(cat "$queue/chunk_sectors") * 512)) # whole zones for each process
		[ "$request_bytes" -le "$zone_bytes" ] ||
			refuse "request_size=$request_size: more than a zone of $device, $zone_bytes bytes"
		share_bytes=$(((share_bytes + zone_bytes - 1) / zone_bytes * zone_bytes))
	fi
	[ $((share_bytes * processes)) -le "$device_bytes" ] ||
		refuse "file_size=$file_size: $device has only $device_bytes bytes; give a smaller file_size"
fi
written="share_bytes=$share_bytes processes=$processes${precondition:+ precondition=$precondition}"
# btrfs compresses no more of a file in which it met data that do not compress.
[ "$compressible" = 0 ] || written="$written compressible=$compressible"
marker="directory $written"

explain_empty_zones() { # FILE, fio's output
	grep -q '"io_bytes" : [1-9]' "$1" ||
		echo "eeio-fio: no zone of $device was written before: nothing can be read; EEIO_ERASE=$device fills it" >&2
}
