# The factors of a run: key=value words -> checked variables. Sourced by the wrapper and pre.sh.
# shellcheck shell=sh disable=SC2015,SC2034 # refuse leaves, so `A && B || refuse` is if-then-else
tool=eeio-io500 preset=${EEIO_PRESET:-standard}
# shellcheck source=../common/checks.sh
. "$HOME/checks.sh"
io500=$(sed -n 's/^path=//p' "$HOME/tool.conf")

processes=2 stonewall_s='' data='' files=''
for word; do
	value=${word#*=}
	case $word in
	level=*) one_of level "$value" "application" ;;
	operation=*) one_of operation "$value" "mixed" ;;
	spatiality=*) one_of spatiality "$value" "mixed" ;;
	buffer=*) one_of buffer "$value" "on" ;;
	flush=*) one_of flush "$value" "end" ;; # IO500 flushes what its write phases wrote
	processes=*) number processes "$value" 1 1000000 && processes=$value ;;
	stonewall_s=*) number stonewall_s "$value" 1 3600 && stonewall_s=$value ;;
	data=*) data=$value ;;
	files=*) number files "$value" 1 1000000000 && files=$value ;;
	timeout_s=*) number timeout_s "$value" 1 604800 ;; # for the runner
	*) refuse "unknown factor '$word': known are level operation spatiality buffer flush processes" \
		"stonewall_s data files timeout_s" ;;
	esac
done
stonewall_s=${stonewall_s:-$(preset_value stonewall_s)}
[ -n "$stonewall_s" ] || refuse "EEIO_PRESET=$preset: not in $HOME/presets.conf"
data=${data:-$(preset_value data)} files=${files:-$(preset_value files)}
bytes=0
[ -z "$data" ] || bytes data "$data"
[ "$((bytes % 2097152))" = 0 ] || refuse "data=$data: give a multiple of 2m"
ini=${EEIO_IO500_INI:-}
if [ -n "$ini" ]; then
	[ "${ini#/}" != "$ini" ] || refuse "EEIO_IO500_INI=$ini: give an absolute path"
	check_own EEIO_IO500_INI "$ini"
	[ -f "$ini" ] && [ -r "$ini" ] || refuse "EEIO_IO500_INI=$ini: not a file that can be read"
	[ -s "$ini" ] && [ "$(wc -c <"$ini")" -le 1048576 ] ||
		refuse "EEIO_IO500_INI=$ini: empty, or longer than 1 MiB"
fi
marker="processes=$processes stonewall_s=$stonewall_s data=$data files=$files ini=$ini"
