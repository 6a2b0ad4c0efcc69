# The factors of a run: key=value words -> checked variables. Sourced by eeio-fio and pre.sh.
# shellcheck shell=sh disable=SC2015,SC2034 # refuse leaves, so `A && B || refuse` is if-then-else
tool=eeio-fio preset=${EEIO_PRESET:-standard}
# shellcheck source=../common/checks.sh
. "$HOME/checks.sh"

level=filesystem operation=read spatiality=sequential request_size=4m buffer=off processes=1
engine=psync iodepth=1 stride=17 flush='' file_size='' runtime_s='' load='' arrivals=even precondition='' read_share=''
distribution=uniform latency_ms='' workload='' compressible=0
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
	engine=*) engine=$value ;;
	iodepth=*) number iodepth "$value" 1 1024 && iodepth=$value ;;
	stride=*) number stride "$value" 2 1024 && stride=$value ;;
	load=*) number load "$value" 1 100 && load=$value ;; # per cent of what pre.sh measured
	precondition=*) number precondition "$value" 100 1000 && precondition=$value ;; # per cent of file_size
	read_share=*) number read_share "$value" 1 99 && read_share=$value ;; # per cent of requests
	arrivals=*) one_of arrivals "$value" "even poisson" && arrivals=$value ;;
	distribution=*) one_of distribution "$value" "uniform zipf" && distribution=$value ;;
	latency_ms=*) number latency_ms "$value" 1 10000 && latency_ms=$value ;; # of 99 % of requests
	workload=*) one_of workload "$value" "vector_index kv_cache" && workload=$value ;; # a request is an operation
	compressible=*) number compressible "$value" 0 100 && compressible=$value ;; # per cent of each 4 KiB
	flush=*) one_of flush "$value" "none end each" && flush=$value ;;
	*) refuse "unknown factor '$word': known are level operation spatiality request_size buffer" \
		"processes file_size runtime_s engine iodepth stride flush load arrivals precondition read_share" \
		"distribution latency_ms workload compressible" ;;
	esac
done
[ -z "$read_share" ] || [ "$operation" = mixed ] || refuse "read_share=$read_share: only for operation=mixed"
# end (without the word, too): fio counts its fsync in the time that its bandwidth is of.
case $operation-$flush in
read-?*) refuse "flush=$flush: a read does not flush; leave it out" ;;
*-none | read-) flush_option='' ;;
*-each) flush_option=--sync=1 ;;
*) flush_option=--end_fsync=1 ;;
esac
case $load-$operation-$buffer-$spatiality in
[1-9]*-mixed-* | [1-9]*-on-* | [1-9]*-strided)
	refuse "load=$load: offered to reads or writes past the page cache, sequential or random: give buffer=off" ;;
-*) [ "$arrivals" = even ] || refuse "arrivals=$arrivals: of an offered load; give load, 1 to 100" ;;
esac
file_size=${file_size:-$(preset_value file_size)}
runtime_s=${runtime_s:-$(preset_value runtime_s)}
[ -n "$file_size" ] && [ -n "$runtime_s" ] || refuse "EEIO_PRESET=$preset: not in $HOME/presets.conf"
number runtime_s "$runtime_s" 0 86400 # 0: until the file is moved
[ -z "$load" ] || [ "$runtime_s" != 0 ] || refuse "runtime_s=0: a load is offered for a time; give runtime_s"
bytes request_size "$request_size" && request_bytes=$bytes
[ "$request_bytes" -ge 4096 ] && [ "$request_bytes" -le 8388608 ] && [ $((request_bytes % 512)) = 0 ] ||
	refuse "request_size=$request_size: give a size from 4k to 8m"
bytes file_size "$file_size"
# file_size is the sum over the processes; each has a file (or a stretch of the device) of its own.
share_bytes=$((bytes / processes / 4096 * 4096))
[ "$share_bytes" -ge "$request_bytes" ] ||
	refuse "file_size=$file_size: less than one request of $request_size for each of $processes processes"

# shellcheck source=target.sh
. "$HOME/target.sh"
# shellcheck source=requests.sh
. "$HOME/requests.sh"
# shellcheck source=load.sh
. "$HOME/load.sh"
