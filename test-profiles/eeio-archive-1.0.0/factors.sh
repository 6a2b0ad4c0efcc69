# The factors of a run: key=value words -> checked variables. Sourced by the wrapper and pre.sh.
# shellcheck shell=sh disable=SC2015,SC2034 # refuse leaves, so `A && B || refuse` is if-then-else
tool=eeio-archive preset=${EEIO_PRESET:-standard}
# shellcheck source=../common/checks.sh
. "$HOME/checks.sh"
python=$(sed -n 's/^python=//p' "$HOME/tool.conf")

level=application operation=mixed buffer=on processes=1 flush=none action=tar copy='' files=''
for word; do
	value=${word#*=}
	case $word in
	level=*) one_of level "$value" "application" ;;
	operation=*) one_of operation "$value" "mixed" ;;
	buffer=*) one_of buffer "$value" "on" ;;
	processes=*) number processes "$value" 1 1 ;;
	flush=*) one_of flush "$value" "none" ;;
	action=*) one_of action "$value" "tar untar rsync zstd copy" && action=$value ;;
	copy=*) one_of copy "$value" "data reflink" && copy=$value ;;
	files=*) number files "$value" 1 1000000 && files=$value ;;
	*) refuse "unknown factor '$word': known are level operation buffer processes flush action copy files" ;;
	esac
done
files=${files:-$(preset_value files)}
[ -z "$copy" ] || [ "$action" = copy ] || refuse "copy=$copy: only with action=copy"
copy=${copy:-data}
[ -n "$files" ] || refuse "EEIO_PRESET=$preset: not in $HOME/presets.conf"
case $action in
rsync | zstd)
	command -v "$action" >/dev/null || refuse "action=$action: $action is missing: install the package $action"
	;;
esac
