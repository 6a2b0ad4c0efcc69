# The factors of a run: key=value words -> checked variables. Sourced by eeio-iozone and pre.sh.
# shellcheck shell=sh disable=SC2015,SC2034 # refuse leaves, so `A && B || refuse` is if-then-else
tool=eeio-iozone preset=${EEIO_PRESET:-standard}
# shellcheck source=../common/checks.sh
. "$HOME/checks.sh"

level=filesystem operation=read spatiality=sequential request_size=4m buffer=off processes=1
stride=17 file_size='' flush=end
for word; do
	value=${word#*=}
	case $word in
	level=*) one_of level "$value" "filesystem" ;;
	operation=*) one_of operation "$value" "read write mixed" && operation=$value ;;
	spatiality=*) one_of spatiality "$value" "sequential random strided" && spatiality=$value ;;
	request_size=*) request_size=$value ;;
	buffer=*) one_of buffer "$value" "on off" && buffer=$value ;;
	processes=*) number processes "$value" 1 256 && processes=$value ;;
	file_size=*) file_size=$value ;;
	flush=*)
		one_of flush "$value" "none end each on off"
		# As the first version said it.
		case $value in on) flush=end ;; off) flush=none ;; *) flush=$value ;; esac
		asked=$value
		;;
	stride=*) number stride "$value" 2 1024 && stride=$value ;;
	*) refuse "unknown factor '$word': known are level operation spatiality request_size buffer" \
		"processes file_size stride flush" ;;
	esac
done

# IOzone's own tests: each is one of these combinations.
case $spatiality-$operation in
sequential-write) test=0 ;;
sequential-read) test=1 ;;
random-mixed) test=2 ;;
strided-read) test=5 ;;
sequential-*) refuse "operation=$operation: IOzone's sequential tests are operation=read and operation=write" ;;
random-*) refuse "operation=$operation: IOzone's random test reads, then writes: give operation=mixed" ;;
*) refuse "operation=$operation: IOzone's strided test is operation=read" ;;
esac
[ -z "${asked:-}" ] || [ "$operation" != read ] || refuse "flush=$asked: a read does not flush; leave it out"

file_size=${file_size:-$(preset_value file_size)}
[ -n "$file_size" ] || refuse "EEIO_PRESET=$preset: not in $HOME/presets.conf"
bytes request_size "$request_size" && request_bytes=$bytes
[ "$request_bytes" -ge 4096 ] && [ "$request_bytes" -le 16777216 ] && [ $((request_bytes % 4096)) = 0 ] ||
	refuse "request_size=$request_size: give a multiple of 4k from 4k to 16m"
bytes file_size "$file_size"
# file_size is the sum over the processes; each has a file of its own.
share_bytes=$((bytes / processes))
[ "$share_bytes" -gt 0 ] && [ $((share_bytes % request_bytes)) = 0 ] && [ $((bytes % processes)) = 0 ] ||
	refuse "file_size=$file_size: not a multiple of $request_size for each of $processes processes"
[ "$test" != 5 ] || [ "$share_bytes" -ge $((stride * request_bytes)) ] ||
	refuse "stride=$stride: longer than the file; give a larger file_size"

marker="directory share_bytes=$share_bytes processes=$processes"

is_ready() { # the files of these factors are whole
	[ "$(cat eeio-iozone.ready 2>/dev/null)" = "$marker" ] || return 1
	for file in $files; do
		[ "$(stat -c %s "$file" 2>/dev/null)" = "$share_bytes" ] || return 1
	done
}
files='' job=0
while [ "$job" -lt "$processes" ]; do
	files="$files eeio-iozone.$job"
	job=$((job + 1))
done
