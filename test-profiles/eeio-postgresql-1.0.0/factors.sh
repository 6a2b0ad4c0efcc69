# The factors of a run: key=value words -> checked variables. Sourced by the wrapper and pre.sh.
# shellcheck shell=sh disable=SC2015,SC2034 # refuse leaves, so `A && B || refuse` is if-then-else
tool=eeio-postgresql preset=${EEIO_PRESET:-standard}
# shellcheck source=../common/checks.sh
. "$HOME/checks.sh"

level=application operation=mixed buffer=on processes=1 synchronous_commit=on fsync=on flush=''
clients=4 scale='' runtime_s=''
for word; do
	value=${word#*=}
	case $word in
	level=*) one_of level "$value" "application" ;;
	operation=*) one_of operation "$value" "mixed" ;;
	buffer=*) one_of buffer "$value" "on" ;;
	processes=*) number processes "$value" 1 1 ;;
	synchronous_commit=*) one_of synchronous_commit "$value" "off on" && synchronous_commit=$value ;;
	fsync=*) one_of fsync "$value" "off on" && fsync=$value ;;
	flush=*) one_of flush "$value" "none each" && flush=$value ;;
	clients=*) number clients "$value" 1 90 && clients=$value ;; # the server takes 100
	scale=*) number scale "$value" 1 100000 && scale=$value ;;
	runtime_s=*) number runtime_s "$value" 1 86400 && runtime_s=$value ;;
	*) refuse "unknown factor '$word': known are level operation buffer processes synchronous_commit fsync" \
		"flush clients scale runtime_s" ;;
	esac
done
# What PostgreSQL does at a commit: https://www.postgresql.org/docs/current/runtime-config-wal.html.
case $fsync.$synchronous_commit in
on.on) means=each ;;
*) means=none ;;
esac
[ "${flush:-$means}" = "$means" ] ||
	refuse "flush=$flush: fsync=$fsync with synchronous_commit=$synchronous_commit is flush=$means"
scale=${scale:-$(preset_value scale)}
runtime_s=${runtime_s:-$(preset_value runtime_s)}
[ -n "$scale" ] && [ -n "$runtime_s" ] || refuse "EEIO_PRESET=$preset: not in $HOME/presets.conf"

python=$(sed -n 's/^python=//p' "$HOME/tool.conf")
programs=$(sed -n 's/^programs=//p' "$HOME/tool.conf")
folder=$scratch/eeio-postgresql.data
workload() { "$python" -E -s -S -B "$HOME/workload.py" "$@"; }
