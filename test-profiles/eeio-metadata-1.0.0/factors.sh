# The factors of a run: key=value words -> checked variables. Sourced by the wrapper and pre.sh.
# shellcheck shell=sh disable=SC2015,SC2034 # refuse leaves, so `A && B || refuse` is if-then-else
tool=eeio-metadata preset=${EEIO_PRESET:-standard}
# shellcheck source=../common/checks.sh
. "$HOME/checks.sh"

level=filesystem operation=metadata buffer=on processes=1 files='' rounds='' size=0 fsync=on
layout=shared mode=auto
for word; do
	value=${word#*=}
	case $word in
	level=*) one_of level "$value" "filesystem" ;;
	operation=*) one_of operation "$value" "metadata" ;;
	buffer=*) one_of buffer "$value" "on" ;;
	processes=*) number processes "$value" 1 256 && processes=$value ;;
	files=*) number files "$value" 1 65536 && files=$value ;;
	rounds=*) number rounds "$value" 1 100000 && rounds=$value ;;
	size=*) size=$value ;;
	fsync=*) one_of fsync "$value" "on off" && fsync=$value ;;
	layout=*) one_of layout "$value" "shared own" && layout=$value ;;
	mode=*) one_of mode "$value" "auto mpi fork" && mode=$value ;;
	*) refuse "unknown factor '$word': known are level operation buffer processes files rounds" \
		"size fsync layout mode" ;;
	esac
done
files=${files:-$(preset_value files)}
rounds=${rounds:-$(preset_value rounds)}
[ -n "$files" ] && [ -n "$rounds" ] || refuse "EEIO_PRESET=$preset: not in $HOME/presets.conf"
if [ "$size" != 0 ]; then
	bytes size "$size"
	[ "$bytes" -le 1073741824 ] || refuse "size=$size: give at most 1g"
	size=$bytes
fi

# auto is what install.sh found, and tool.conf says: one machine never changes between the two.
[ "$mode" != auto ] || mode=$(sed -n 's/^mode=//p' "$HOME/tool.conf")
[ "$mode" != mpi ] || [ -x "$HOME/metadata-mpi" ] ||
	refuse "mode=mpi: MPI was missing when this was installed: install the packages openmpi-bin" \
		"and libopenmpi-dev, then this profile again"
[ "$mode" != fork ] || [ -z "${EEIO_HOSTFILE:-}" ] ||
	refuse "mode=fork: its processes run on one machine; unset EEIO_HOSTFILE, or give mode=mpi"
