# The factors of a run: key=value words -> checked variables. Sourced by the wrapper and pre.sh.
# shellcheck shell=sh disable=SC2015,SC2034 # the wrapper and pre.sh take what is set here
tool=eeio-btio preset=${EEIO_PRESET:-standard}
# shellcheck source=../common/checks.sh
. "$HOME/checks.sh"

level=application cold=off class='' subtype=full buffer=on processes=4 api=mpiio flush='' fsync=''
compute_ms=0 collective_buffer=0
for word; do
	value=${word#*=}
	case $word in
	level=*) one_of level "$value" "application" ;;
	class=*) one_of class "$value" "S W A B C" && class=$value ;;
	subtype=*) one_of subtype "$value" "full simple" && subtype=$value ;;
	buffer=*) one_of buffer "$value" "on" ;;
	processes=*) number processes "$value" 1 256 && processes=$value ;;
	api=*) one_of api "$value" "mpiio" ;;
	flush=each) refuse "flush=each: BT-IO flushes no single call; give flush=end or flush=none" ;;
	flush=*) one_of flush "$value" "none end" && flush=$value ;;
	fsync=*) one_of fsync "$value" "on off" && fsync=$value ;; # flush=end and none of before
	cold=*) one_of cold "$value" "on off" && cold=$value ;;
	compute_ms=*) number compute_ms "$value" 0 3600000 && compute_ms=$value ;;
	collective_buffer=*) collective_buffer=$value ;;
	*) refuse "unknown factor '$word': known are level class subtype buffer processes api flush" \
		"compute_ms collective_buffer cold" ;;
	esac
done
[ -n "$flush" ] || case $fsync in on) flush=end ;; off) flush=none ;; esac
# The original flushes nothing; ours does unless told.
[ -n "$flush" ] || { [ -n "${EEIO_NPB:-}" ] && flush=none || flush=end; }
class=${class:-$(preset_value class)}
[ -n "$class" ] || refuse "EEIO_PRESET=$preset: not in $HOME/presets.conf"
case $processes in
1 | 4 | 9 | 16 | 25 | 36 | 49 | 64 | 81 | 100 | 121 | 144 | 169 | 196 | 225 | 256) ;;
*) refuse "processes=$processes: BT-IO needs a square number (1, 4, 9, 16, ...)" ;;
esac
if [ "$collective_buffer" != 0 ]; then
	bytes collective_buffer "$collective_buffer" && collective_buffer=$bytes
	[ "$collective_buffer" -le 1073741824 ] || refuse "collective_buffer=$collective_buffer: give at most 1g"
fi
