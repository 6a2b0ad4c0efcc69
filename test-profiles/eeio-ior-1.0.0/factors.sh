# The factors of a run: key=value words -> checked variables. Sourced by the wrapper and pre.sh.
# shellcheck shell=sh disable=SC2015,SC2034 # refuse leaves, so `A && B || refuse` is if-then-else
tool=eeio-ior preset=${EEIO_PRESET:-standard}
# shellcheck source=../common/checks.sh
. "$HOME/checks.sh"

level=library operation=read spatiality=sequential request_size=4m buffer=on processes=1
api=mpiio collective=off file_per_process=off flush='' fsync='' file_size=''
for word; do
	value=${word#*=}
	case $word in
	level=*) one_of level "$value" "library filesystem" && level=$value ;;
	operation=*) one_of operation "$value" "read write" && operation=$value ;;
	spatiality=*) one_of spatiality "$value" "sequential random strided" && spatiality=$value ;;
	request_size=*) request_size=$value ;;
	buffer=*) one_of buffer "$value" "on off" && buffer=$value ;;
	processes=*) number processes "$value" 1 65536 && processes=$value ;;
	api=*) one_of api "$value" "posix mpiio hdf5" && api=$value ;;
	collective=*) one_of collective "$value" "on off" && collective=$value ;;
	file_per_process=*) one_of file_per_process "$value" "on off" && file_per_process=$value ;;
	flush=*) one_of flush "$value" "none end each" && flush=$value ;;
	fsync=*) one_of fsync "$value" "on off" && fsync=$value ;; # flush=end and none of before
	file_size=*) file_size=$value ;;
	*) refuse "unknown factor '$word': known are level operation spatiality request_size buffer" \
		"processes api collective file_per_process flush file_size" ;;
	esac
done

[ "$operation" = write ] || [ -z "$flush" ] || refuse "flush=$flush: a read does not flush; leave it out"
[ "$fsync" != off ] || flush=${flush:-none}
flush=${flush:-end}
[ "$api$flush" != hdf5each ] || refuse "flush=each: not with HDF5; give flush=end, api=mpiio or api=posix"
[ "$api" = posix ] || [ "$buffer" = on ] ||
	refuse "buffer=off: only api=posix has direct I/O; give buffer=on with api=$api"
[ "$collective" = off ] || [ "$api" != posix ] || refuse "collective=on: POSIX has no collective calls"
[ "$collective" = off ] || [ "$spatiality" != random ] ||
	refuse "spatiality=random: IOR ends its random collective runs; give collective=off"
[ "$file_per_process" = off ] || [ "$spatiality" != strided ] ||
	refuse "spatiality=strided: processes stride through one file; give file_per_process=off"
[ "$api" != hdf5 ] || [ "$spatiality" != random ] ||
	refuse "spatiality=random: IOR has none with HDF5; give api=mpiio or api=posix"
file_size=${file_size:-$(preset_value file_size)}
[ -n "$file_size" ] || refuse "EEIO_PRESET=$preset: not in $HOME/presets.conf"
bytes request_size "$request_size" && request_bytes=$bytes
bytes file_size "$file_size"
# file_size is the sum over the processes, in whole requests.
requests=$((bytes / processes / request_bytes))
[ "$requests" -gt 0 ] || refuse "file_size=$file_size: less than a request of each of $processes processes"
share_bytes=$((requests * request_bytes))

marker="api=$api processes=$processes share_bytes=$share_bytes request_bytes=$request_bytes \
spatiality=$spatiality file_per_process=$file_per_process"

# IOR's own words for these factors, the operation apart.
words="-a $(echo "$api" | tr '[:lower:]' '[:upper:]')"
case $spatiality in
strided) words="$words -b $request_bytes -t $request_bytes -s $requests" ;;
random) words="$words -z -b $share_bytes -t $request_bytes" ;;
*) words="$words -b $share_bytes -t $request_bytes" ;;
esac
[ "$collective" = off ] || words="$words -c"
[ "$file_per_process" = off ] || words="$words -F"
# 3.x and 4.x both take it so; -B is neither's.
[ "$buffer" = on ] || words="$words -O useO_DIRECT=1"
# IOR ends when random offsets in one file are to be read by another process than wrote them.
[ "$spatiality$file_per_process" = randomoff ] || words="$words -C"
words="$words -i 1 -k -o eeio-ior.data"
