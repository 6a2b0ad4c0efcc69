# The factors of a run: key=value words -> checked variables. Sourced by the wrapper and pre.sh.
# shellcheck shell=sh disable=SC2015,SC2034 # refuse leaves, so `A && B || refuse` is if-then-else
tool=eeio-rocksdb preset=${EEIO_PRESET:-standard}
# shellcheck source=../common/checks.sh
. "$HOME/checks.sh"
python=$(sed -n 's/^python=//p' "$HOME/tool.conf")
db_bench=$(sed -n 's/^path=//p' "$HOME/tool.conf")

level=application operation='' buffer=on processes=1 workload=fillrandom sync=off flush=''
keys='' operations='' runtime_s='' value_size=100
for word; do
	value=${word#*=}
	case $word in
	level=*) one_of level "$value" "application" ;;
	operation=*) one_of operation "$value" "mixed read" && operation=$value ;;
	buffer=*) one_of buffer "$value" "on" ;;
	processes=*) number processes "$value" 1 256 && processes=$value ;; # db_bench's threads
	workload=*) one_of workload "$value" "fillseq fillrandom readrandom readwhilewriting" && workload=$value ;;
	sync=*) one_of sync "$value" "off on" && sync=$value ;;
	flush=*) one_of flush "$value" "none each" && flush=$value ;;
	keys=*) number keys "$value" 1 1000000000 && keys=$value ;;
	operations=*) number operations "$value" 1 1000000000 && operations=$value ;;
	value_size=*) number value_size "$value" 1 65536 && value_size=$value ;;
	runtime_s=*) number runtime_s "$value" 0 86400 && runtime_s=$value ;;
	*) refuse "unknown factor '$word': known are level operation buffer processes workload sync flush" \
		"keys operations value_size runtime_s" ;;
	esac
done
means=mixed
[ "$workload" != readrandom ] || means="read"
[ "${operation:-$means}" = "$means" ] ||
	refuse "operation=$operation: workload=$workload is operation=$means"
[ "$workload.$sync" != readrandom.on ] || refuse "sync=on: workload=readrandom does not write"
[ "$workload" != readrandom ] || [ -z "$flush" ] || refuse "flush=$flush: workload=readrandom does not write"
case $sync in on) means=each ;; *) means=none ;; esac
[ "${flush:-$means}" = "$means" ] || refuse "flush=$flush: sync=$sync is flush=$means"
[ "$workload" != fillseq ] || [ "$processes" = 1 ] ||
	refuse "processes=$processes: of workload=fillseq each would write the same keys; give processes=1"
keys=${keys:-$(preset_value keys)}
operations=${operations:-$(preset_value operations)}
runtime_s=${runtime_s:-$(preset_value runtime_s)}
[ -n "$keys" ] && [ -n "$operations" ] && [ -n "$runtime_s" ] ||
	refuse "EEIO_PRESET=$preset: not in $HOME/presets.conf"
# It goes through the keys in order, once.
[ "$workload" != fillseq ] || operations=$keys
