# The factors of a run: key=value words -> checked variables. Sourced by the wrapper and pre.sh.
# shellcheck shell=sh disable=SC2015,SC2034 # refuse leaves, so `A && B || refuse` is if-then-else
tool=eeio-checkpoint preset=${EEIO_PRESET:-standard}
# shellcheck source=../common/checks.sh
. "$HOME/checks.sh"

level=application operation=write spatiality=sequential buffer=on processes=4 fsync=on flush=''
request_size=1m size='' spread=50 interval_s='' checkpoints='' compute=sleep
for word; do
	value=${word#*=}
	case $word in
	level=*) one_of level "$value" "application" ;;
	operation=*) one_of operation "$value" "write" ;;
	spatiality=*) one_of spatiality "$value" "sequential" ;;
	buffer=*) one_of buffer "$value" "on" ;;
	processes=*) number processes "$value" 1 256 && processes=$value ;;
	fsync=*) one_of fsync "$value" "on off" && fsync=$value ;;
	flush=*) one_of flush "$value" "none each" && flush=$value ;;
	request_size=*) request_size=$value ;;
	size=*) size=$value ;;
	spread=*) number spread "$value" 0 90 && spread=$value ;;
	interval_s=*) number interval_s "$value" 0 86400 && interval_s=$value ;;
	checkpoints=*) number checkpoints "$value" 1 100000 && checkpoints=$value ;;
	compute=*) one_of compute "$value" "sleep busy" && compute=$value ;;
	*) refuse "unknown factor '$word': known are level operation spatiality buffer processes fsync flush" \
		"request_size size spread interval_s checkpoints compute" ;;
	esac
done
case $fsync in on) means=each ;; *) means=none ;; esac
[ "${flush:-$means}" = "$means" ] || refuse "flush=$flush: fsync=$fsync is flush=$means"
size=${size:-$(preset_value size)}
interval_s=${interval_s:-$(preset_value interval_s)}
checkpoints=${checkpoints:-$(preset_value checkpoints)}
[ -n "$size" ] && [ -n "$interval_s" ] && [ -n "$checkpoints" ] ||
	refuse "EEIO_PRESET=$preset: not in $HOME/presets.conf"
bytes size "$size"
[ "$bytes" -ge 4096 ] && [ "$bytes" -le 70368744177664 ] || refuse "size=$size: give 4k to 65536g"
size=$bytes
bytes request_size "$request_size"
[ "$bytes" -ge 4096 ] && [ "$bytes" -le 8388608 ] || refuse "request_size=$request_size: give 4k to 8m"
request_size=$bytes
