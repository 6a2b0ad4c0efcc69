# The factors of a run: key=value words -> checked variables. Sourced by the wrapper and pre.sh.
# shellcheck shell=sh disable=SC2015,SC2034 # refuse leaves, so `A && B || refuse` is if-then-else
tool=eeio-mariadb preset=${EEIO_PRESET:-standard}
# shellcheck source=../common/checks.sh
. "$HOME/checks.sh"

level=application operation='' buffer=off processes=1 workload=read_write flush_log_at_trx_commit=1
flush='' clients=4 rows='' runtime_s=''
for word; do
	value=${word#*=}
	case $word in
	level=*) one_of level "$value" "application" ;;
	operation=*) one_of operation "$value" "read mixed" && operation=$value ;;
	buffer=*) one_of buffer "$value" "on off" && buffer=$value ;;
	processes=*) number processes "$value" 1 1 ;;
	workload=*) one_of workload "$value" "read_only read_write write_only" && workload=$value ;;
	flush_log_at_trx_commit=*)
		one_of flush_log_at_trx_commit "$value" "0 1 2" && flush_log_at_trx_commit=$value
		;;
	flush=*) one_of flush "$value" "none each" && flush=$value ;;
	clients=*) number clients "$value" 1 100 && clients=$value ;; # the server takes 151
	rows=*) number rows "$value" 1 1000000000 && rows=$value ;;
	runtime_s=*) number runtime_s "$value" 1 86400 && runtime_s=$value ;;
	*) refuse "unknown factor '$word': known are level operation buffer processes workload" \
		"flush_log_at_trx_commit flush clients rows runtime_s" ;;
	esac
done
# What InnoDB does at a commit: https://mariadb.com/kb/en/innodb-system-variables/.
case $workload.$flush_log_at_trx_commit in
read_only.*) does=read means='' ;;
*.1) does=mixed means=each ;;
*) does=mixed means=none ;;
esac
[ "${operation:-$does}" = $does ] || refuse "operation=$operation: workload=$workload is operation=$does"
[ "${flush:-$means}" = "$means" ] ||
	refuse "flush=$flush: workload=$workload with flush_log_at_trx_commit=$flush_log_at_trx_commit is" \
		"${means:+flush=}${means:-without flush}"
rows=${rows:-$(preset_value rows)}
runtime_s=${runtime_s:-$(preset_value runtime_s)}
[ -n "$rows" ] && [ -n "$runtime_s" ] || refuse "EEIO_PRESET=$preset: not in $HOME/presets.conf"

python=$(sed -n 's/^python=//p' "$HOME/tool.conf")
program=$(sed -n 's/^path=//p' "$HOME/tool.conf")
folder=$scratch/eeio-mariadb.data
workload() { "$python" -E -s -S -B "$HOME/workload.py" "$@"; }
