# The factors of a run: key=value words -> checked variables. Sourced by eeio-lmbench and pre.sh.
# shellcheck shell=sh disable=SC2015,SC2034 # refuse leaves, so `A && B || refuse` is if-then-else
tool=eeio-lmbench preset=${EEIO_PRESET:-standard}
# shellcheck source=../common/checks.sh
. "$HOME/checks.sh"

tests='memory syscall filesystem' memory_size='' memory_limit='' latency_size='' repetitions=''
for word; do
	value=${word#*=}
	case $word in
	level=*) one_of level "$value" "context" ;;
	tests=*)
		one_of tests "$value" "all memory syscall filesystem"
		[ "$value" = all ] || tests=$value
		;;
	memory_size=*) memory_size=$value ;;
	memory_limit=*) memory_limit=$value ;;
	latency_size=*) latency_size=$value ;;
	repetitions=*) repetitions=$value ;;
	*) refuse "unknown factor '$word': known are level tests memory_size memory_limit latency_size repetitions" ;;
	esac
done

memory_size=${memory_size:-$(preset_value memory_size)}
memory_limit=${memory_limit:-$(preset_value memory_limit)}
latency_size=${latency_size:-$(preset_value latency_size)}
repetitions=${repetitions:-$(preset_value repetitions)}
[ -n "$memory_size" ] && [ -n "$memory_limit" ] && [ -n "$latency_size" ] && [ -n "$repetitions" ] ||
	refuse "EEIO_PRESET=$preset: not in $HOME/presets.conf"
number repetitions "$repetitions" 1 1000
mebibytes() { # KEY VALUE -> $mib
	bytes "$1" "$2"
	mib=$((bytes / 1048576))
	[ "$mib" -ge 1 ] || refuse "$1=$2: give at least 1m"
}
mebibytes memory_size "$memory_size" && memory_mib=$mib
mebibytes latency_size "$latency_size" && latency_mib=$mib
mebibytes memory_limit "$memory_limit" && limit_mib=$mib

# Memory is what lies beyond the last cache: twice its size, up to the limit and an eighth of the
# free memory (bw_mem cp takes two such blocks).
available_mib=$(awk '$1 == "MemAvailable:" { printf "%d", $2 / 1024 }' /proc/meminfo)
for file in /sys/devices/system/cpu/cpu0/cache/index*/size; do
	kib=$(sed -n 's/K$//p' "$file" 2>/dev/null)
	[ "$memory_mib" -ge $((${kib:-0} / 512)) ] || memory_mib=$((${kib:-0} / 512))
done
[ "$memory_mib" -le "$limit_mib" ] || memory_mib=$limit_mib
[ "$memory_mib" -le $((available_mib / 8)) ] || memory_mib=$((available_mib / 8 + 1))
[ "$latency_mib" -le $((available_mib / 2)) ] || latency_mib=$((available_mib / 2 + 1))
