# The factors of a run: key=value words -> checked variables. Sourced by eeio-bonnie and pre.sh.
# shellcheck shell=sh disable=SC2015,SC2034 # refuse leaves, so `A && B || refuse` is if-then-else
tool=eeio-bonnie preset=${EEIO_PRESET:-standard}
# shellcheck source=../common/checks.sh
. "$HOME/checks.sh"

level=filesystem operation=mixed spatiality=sequential request_size=64k buffer=off flush=end file_size=''
characters=0
for word; do
	value=${word#*=}
	case $word in
	level=*) one_of level "$value" "filesystem" ;;
	operation=*) one_of operation "$value" "mixed" ;;
	spatiality=*) one_of spatiality "$value" "sequential" ;;
	request_size=*) one_of request_size "$value" "4k 8k 16k 32k 64k 128k 256k 512k 1m" && request_size=$value ;;
	buffer=*) one_of buffer "$value" "on off" && buffer=$value ;;
	flush=none) refuse "flush=none: Bonnie++ flushes its file whenever it closes it; give flush=end or flush=each" ;;
	flush=*) one_of flush "$value" "end each" && flush=$value ;;
	file_size=*) file_size=$value ;;
	characters=*) characters=$value ;; # this much a byte at a time, before the blocks
	*) refuse "unknown factor '$word': known are level operation spatiality request_size buffer flush" \
		"file_size characters" ;;
	esac
done

file_size=${file_size:-$(preset_value file_size)}
[ -n "$file_size" ] || refuse "EEIO_PRESET=$preset: not in $HOME/presets.conf"
bytes request_size "$request_size" && request_bytes=$bytes
bytes file_size "$file_size"
size_mib=$((bytes / 1048576))
[ "$size_mib" -ge 8 ] && [ $((bytes % 1048576)) = 0 ] ||
	refuse "file_size=$file_size: give a multiple of 1 MiB, at least 8m"
if [ "$characters" != 0 ]; then
	[ "$buffer" = on ] || refuse "characters=$characters: a byte at a time is no direct I/O; give buffer=on"
	[ "$flush" = end ] || refuse "characters=$characters: not with flush=each, which would flush every byte; give flush=end"
	bytes characters "$characters"
	[ $((bytes % 1048576)) = 0 ] && [ "$bytes" -le $((size_mib * 1048576)) ] ||
		refuse "characters=$characters: give a multiple of 1 MiB, at most file_size=$file_size"
	characters_mib=$((bytes / 1048576))
fi
# A buffered measurement counts only on a file of at least twice the memory.
multiple=$(preset_value memory_multiple)
if [ -n "$multiple" ] && [ "$buffer" = on ]; then
	least_mib=$(awk -v times="$multiple" '$1 == "MemTotal:" { printf "%d", $2 * times / 1024 + 1 }' /proc/meminfo)
	[ "$size_mib" -ge "$least_mib" ] || size_mib=$least_mib
fi
