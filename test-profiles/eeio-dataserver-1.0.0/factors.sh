# The factors of a run: key=value words -> checked variables. Sourced by the wrapper and pre.sh.
# shellcheck shell=sh disable=SC2015,SC2034 # refuse leaves, so `A && B || refuse` is if-then-else
tool=eeio-dataserver preset=${EEIO_PRESET:-standard}
# shellcheck source=../common/checks.sh
. "$HOME/checks.sh"

level=library operation=read spatiality=sequential request_size=4m buffer=off processes=1
api=posix clients='' stripe='' stride='' file=private collective=off flush='' fsync='' file_size=''
runtime_s='' replay='' timed=off pace=none load=''
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
	stride=*) number stride "$value" 1 1024 && stride=$value ;;
	file=*) one_of file "$value" "private shared" && file=$value ;;
	collective=*) one_of collective "$value" "on off" && collective=$value ;;
	flush=*) one_of flush "$value" "none end each" && flush=$value ;;
	fsync=*) one_of fsync "$value" "on off" && fsync=$value ;; # flush=end and none of before
	file_size=*) file_size=$value ;;
	runtime_s=*) number runtime_s "$value" 0 86400 && runtime_s=$value ;;
	replay=hou10ni) replay=$HOME/hou10ni.csv ;; # of install.sh, by snapshots.sh
	replay=*) replay=$value ;;
	pace=*) one_of pace "$value" "none lockstep free" && pace=$value ;;
	load=*) number load "$value" 1 100 && load=$value ;; # per cent of what pre.sh measured
	timed=*) one_of timed "$value" "on off" && timed=$value ;;
	*) refuse "unknown factor '$word': known are level operation spatiality request_size buffer" \
		"processes api clients stripe stride file collective flush file_size runtime_s replay timed pace load" ;;
	esac
done

[ "$api" = posix ] || [ "$buffer" = on ] ||
	refuse "buffer=off: MPI-IO has no direct I/O; give buffer=on with api=mpiio"
[ "$operation" != read ] || [ -z "$flush" ] || refuse "flush=$flush: a read does not flush; leave it out"
[ "$fsync" != off ] || flush=${flush:-none}
flush=${flush:-end}
[ "$operation" != mixed ] || [ -n "$replay" ] || refuse "operation=mixed: give replay=TRACE with it"
[ -z "$replay" ] || [ -r "$replay" ] || [ "$replay" = "$HOME/hou10ni.csv" ] || refuse "replay=$replay: cannot be read"
[ "$timed" = off ] || [ -n "$replay" ] || refuse "timed=on: give replay=TRACE with it"
file_size=${file_size:-$(preset_value file_size)}
runtime_s=${runtime_s:-$(preset_value runtime_s)}
[ -n "$file_size" ] && [ -n "$runtime_s" ] || refuse "EEIO_PRESET=$preset: not in $HOME/presets.conf"
# A replay is whole: half of a trace has other phases than the trace.
[ -z "$replay" ] || runtime_s=0
case $load-$buffer-$replay$pace$collective-$runtime_s in
-* | *-off-noneoff-[1-9]*) ;;
*) refuse "load=$load: offered past the page cache for a time: give buffer=off and runtime_s, without" \
	"replay, pace and collective" ;;
esac
# shellcheck source=shape.sh
. "$HOME/shape.sh"
[ "$buffer" = on ] && direct=off || direct=on

# A single file bears the same stamps whoever writes it, so that it serves one server and a shared mode alike.
case $file$processes$replay in
shared* | private1) marker="one file of $((clients * client_bytes)) bytes" ;;
*) marker="servers=$processes clients=$clients stripe=$stripe_bytes client_bytes=$client_bytes replay=$replay" ;;
esac
geometry="file=$file clients=$clients stripe=$stripe_bytes request=$request_bytes client_bytes=$client_bytes directory=."
# shellcheck source=load.sh
. "$HOME/load.sh"
