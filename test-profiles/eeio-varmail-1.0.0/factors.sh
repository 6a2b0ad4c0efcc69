# The factors of a run: key=value words -> checked variables. Sourced by the wrapper and pre.sh.
# shellcheck shell=sh disable=SC2015,SC2034 # refuse leaves, so `A && B || refuse` is if-then-else
tool=eeio-varmail preset=${EEIO_PRESET:-standard}
# shellcheck source=../common/checks.sh
. "$HOME/checks.sh"

level=application operation=mixed buffer=on processes=16 fsync=on flush='' files='' loops='' runtime_s=''
size=16k append=16k
for word; do
	value=${word#*=}
	case $word in
	level=*) one_of level "$value" "application" ;;
	operation=*) one_of operation "$value" "mixed" ;;
	buffer=*) one_of buffer "$value" "on" ;;
	processes=*) number processes "$value" 1 256 && processes=$value ;;
	fsync=*) one_of fsync "$value" "on off" && fsync=$value ;;
	flush=*) one_of flush "$value" "none each" && flush=$value ;;
	files=*) number files "$value" 2 10000000 && files=$value ;;
	loops=*) number loops "$value" 1 100000000 && loops=$value ;;
	runtime_s=*) number runtime_s "$value" 0 86400 && runtime_s=$value ;;
	size=*) size=$value ;;
	append=*) append=$value ;;
	*) refuse "unknown factor '$word': known are level operation buffer processes fsync flush files" \
		"loops runtime_s size append" ;;
	esac
done
case $fsync in on) means=each ;; *) means=none ;; esac
[ "${flush:-$means}" = "$means" ] || refuse "flush=$flush: fsync=$fsync is flush=$means"
files=${files:-$(preset_value files)}
loops=${loops:-$(preset_value loops)}
runtime_s=${runtime_s:-$(preset_value runtime_s)}
[ -n "$files" ] && [ -n "$loops" ] && [ -n "$runtime_s" ] ||
	refuse "EEIO_PRESET=$preset: not in $HOME/presets.conf"
[ "$files" -ge $((2 * processes)) ] ||
	refuse "files=$files: give at least two for each of $processes processes"
bytes size "$size"
[ "$bytes" -le 67108864 ] || refuse "size=$size: give at most 64m"
size=$bytes
bytes append "$append"
[ "$bytes" -le 2097152 ] || refuse "append=$append: give at most 2m"
append=$bytes
