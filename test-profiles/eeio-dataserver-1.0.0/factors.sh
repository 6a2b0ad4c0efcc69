# The factors of a run: key=value words -> checked variables. Sourced by the wrapper and pre.sh.
# shellcheck shell=sh disable=SC2015,SC2034 # refuse leaves, so `A && B || refuse` is if-then-else
tool=eeio-dataserver preset=${EEIO_PRESET:-standard}
# shellcheck source=words.sh
. "$HOME/words.sh"

level=library operation=read spatiality=sequential request_size=4m buffer=off processes=1
api=posix clients=4 stripe='' fsync=off file_size='' runtime_s='' replay='' timed=off
for word; do
	value=${word#*=}
	case $word in
	level=*) one_of level "$value" "library application" && level=$value ;;
	operation=*) one_of operation "$value" "read write mixed" && operation=$value ;;
	spatiality=*) one_of spatiality "$value" "sequential strided" && spatiality=$value ;;
	request_size=*) request_size=$value ;;
	buffer=*) one_of buffer "$value" "on off" && buffer=$value ;;
	processes=*) number processes "$value" 1 256 && processes=$value ;;
	api=*) one_of api "$value" "posix mpiio" && api=$value ;;
	clients=*) number clients "$value" 1 65536 && clients=$value ;;
	stripe=*) stripe=$value ;;
	fsync=*) one_of fsync "$value" "on off" && fsync=$value ;;
	file_size=*) file_size=$value ;;
	runtime_s=*) number runtime_s "$value" 0 86400 && runtime_s=$value ;;
	replay=*) replay=$value ;;
	timed=*) one_of timed "$value" "on off" && timed=$value ;;
	*) refuse "unknown factor '$word': known are level operation spatiality request_size buffer" \
		"processes api clients stripe fsync file_size runtime_s replay timed" ;;
	esac
done

[ "$api" = posix ] || [ "$buffer" = on ] ||
	refuse "buffer=off: MPI-IO has no direct I/O; give buffer=on with api=mpiio"
[ "$operation" != mixed ] || [ -n "$replay" ] || refuse "operation=mixed: give replay=TRACE with it"
[ -z "$replay" ] || [ -r "$replay" ] || refuse "replay=$replay: cannot be read"
[ "$timed" = off ] || [ -n "$replay" ] || refuse "timed=on: give replay=TRACE with it"
file_size=${file_size:-$(preset_value file_size)}
runtime_s=${runtime_s:-$(preset_value runtime_s)}
[ -n "$file_size" ] && [ -n "$runtime_s" ] || refuse "EEIO_PRESET=$preset: not in $HOME/presets.conf"
# A replay is whole: half of a trace has other phases than the trace.
[ -z "$replay" ] || runtime_s=0
bytes request_size "$request_size" && request_bytes=$bytes
[ $((request_bytes % 4096)) = 0 ] && [ "$request_bytes" -le 1073741824 ] ||
	refuse "request_size=$request_size: give a multiple of 4k up to 1g"
# Unless told, a stripe is a request: each request goes to one server whole.
bytes stripe "${stripe:-$request_size}" && stripe_bytes=$bytes
[ $((stripe_bytes % 4096)) = 0 ] || refuse "stripe=$stripe: give a multiple of 4k"
bytes file_size "$file_size"
# file_size is the sum over the clients, in whole requests.
client_bytes=$((bytes / clients / request_bytes * request_bytes))
[ "$client_bytes" -gt 0 ] || refuse "file_size=$file_size: less than a request of each of $clients clients"
[ "$spatiality" = strided ] && pattern=strided || pattern=contiguous
[ "$buffer" = on ] && direct=off || direct=on

scratch=${EEIO_DIRECTORY:-$HOME/scratch}/eeio-scratch
output=${EEIO_OUTPUT_DIR:-$HOME/output}
marker="servers=$processes clients=$clients stripe=$stripe_bytes client_bytes=$client_bytes replay=$replay"
geometry="clients=$clients stripe=$stripe_bytes request=$request_bytes client_bytes=$client_bytes directory=$scratch"
