# The factors of a run: key=value words -> checked variables. Sourced by eeio-fio and pre.sh.
# shellcheck shell=sh disable=SC2015,SC2034 # refuse leaves, so `A && B || refuse` is if-then-else
tool=eeio-fio preset=${EEIO_PRESET:-standard}
# shellcheck source=words.sh
. "$HOME/words.sh"

level=filesystem operation=read spatiality=sequential request_size=4m buffer=off processes=1
engine=psync iodepth=1 stride=17 flush='' file_size='' runtime_s=''
for word; do
	value=${word#*=}
	case $word in
	level=*) one_of level "$value" "device filesystem" && level=$value ;;
	operation=*) one_of operation "$value" "read write mixed" && operation=$value ;;
	spatiality=*) one_of spatiality "$value" "sequential random strided" && spatiality=$value ;;
	request_size=*) request_size=$value ;;
	buffer=*) one_of buffer "$value" "on off" && buffer=$value ;;
	processes=*) number processes "$value" 1 1024 && processes=$value ;;
	file_size=*) file_size=$value ;;
	runtime_s=*) runtime_s=$value ;;
	engine=*) one_of engine "$value" "psync sync pvsync pvsync2 libaio io_uring posixaio mmap" && engine=$value ;;
	iodepth=*) number iodepth "$value" 1 1024 && iodepth=$value ;;
	stride=*) number stride "$value" 2 1024 && stride=$value ;;
	flush=*) one_of flush "$value" "none end each" && flush=$value ;;
	*) refuse "unknown factor '$word': known are level operation spatiality request_size buffer" \
		"processes file_size runtime_s engine iodepth stride flush" ;;
	esac
done
# end (without the word, too): fio counts its fsync in the time that its bandwidth is of.
case $operation-$flush in
read-?*) refuse "flush=$flush: a read flushes nothing; leave it out" ;;
*-none | read-) flush_option='' ;;
*-each) flush_option=--sync=1 ;;
*) flush_option=--end_fsync=1 ;;
esac
file_size=${file_size:-$(preset_value file_size)}
runtime_s=${runtime_s:-$(preset_value runtime_s)}
[ -n "$file_size" ] && [ -n "$runtime_s" ] || refuse "EEIO_PRESET=$preset: not in $HOME/presets.conf"
number runtime_s "$runtime_s" 0 86400 # 0: until the file is moved
bytes request_size "$request_size" && request_bytes=$bytes
[ "$request_bytes" -ge 4096 ] && [ "$request_bytes" -le 8388608 ] && [ $((request_bytes % 512)) = 0 ] ||
	refuse "request_size=$request_size: give a size from 4k to 8m"
bytes file_size "$file_size"
# file_size is the sum over the processes; each has a file (or a stretch of the device) of its own.
share_bytes=$((bytes / processes / 4096 * 4096))
[ "$share_bytes" -ge "$request_bytes" ] ||
	refuse "file_size=$file_size: less than one request of $request_size for each of $processes processes"

scratch=${EEIO_DIRECTORY:-$HOME/scratch}/eeio-scratch
output=${EEIO_OUTPUT_DIR:-$HOME/output}
device=''
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
		mounts=$(lsblk -nro MOUNTPOINT "$device") || refuse "$device: lsblk cannot tell whether it is mounted"
		[ -z "$(echo "$mounts" | tr -d ' \n')" ] || refuse "$device: mounted; unmount it and its partitions first"
	fi
	# Asked by its number: the node need not lie in /dev nor have the kernel's name.
	device_bytes=$(lsblk -bdnro SIZE "$device") || refuse "$device: lsblk cannot tell its size"
	device=$(readlink -f "$device")
	[ $((share_bytes * processes)) -le "$device_bytes" ] ||
		refuse "file_size=$file_size: $device has only $device_bytes bytes; give a smaller file_size"
fi
marker="directory share_bytes=$share_bytes processes=$processes"
