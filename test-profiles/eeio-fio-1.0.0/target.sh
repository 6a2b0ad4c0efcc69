# What is read or written, and what may be erased. For derived.sh.
# shellcheck shell=sh disable=SC2034 # for the scripts
device='' identity='' zone_options=''
[ "$level" != device ] || device=${EEIO_DEVICE:-}
if [ -n "$device" ]; then
	case $device in
	/*) ;;
	*) refuse "EEIO_DEVICE=$device: give an absolute path, such as /dev/sdX" ;;
	esac
	[ -b "$device" ] || refuse "EEIO_DEVICE=$device: not a block device"
	check_device "$device"
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
	# Another drive may have this name tomorrow, another file be behind a loop device.
	identity=$(cd "${queue%/queue}" 2>/dev/null && cat wwid device/wwid device/serial device/cid dm/uuid md/uuid 2>/dev/null
		lsblk -bdnro SERIAL,WWN,SIZE "$device"
		losetup -nO BACK-MAJ:MIN,BACK-INO "$device" 2>/dev/null)
	identity=$(echo "$identity" | tr -s ' \n' '  ')
	if [ "$(cat "$queue/zoned" 2>/dev/null)" = host-managed ]; then
		# shellcheck source=zones.sh
		. "$HOME/zones.sh"
	fi
	[ $((share_bytes * processes)) -le "$device_bytes" ] ||
		refuse "file_size=$file_size processes=$processes${zone_options:+, in whole zones}: $device has only" \
			"$device_bytes bytes; give a smaller file_size${zone_options:+ or fewer processes}"
fi
written="share_bytes=$share_bytes processes=$processes${precondition:+ precondition=$precondition}"
# btrfs compresses no more of a file in which it met data that do not compress.
[ "$compressible" = 0 ] || written="$written compressible=$compressible"
marker="directory $written"
