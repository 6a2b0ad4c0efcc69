# The factors of a run: key=value words -> checked variables. Sourced by the wrapper and pre.sh.
# shellcheck shell=sh disable=SC2015,SC2034 # refuse leaves, so `A && B || refuse` is if-then-else
tool=eeio-sqlite preset=${EEIO_PRESET:-standard}
# shellcheck source=../common/checks.sh
. "$HOME/checks.sh"
python=$(sed -n 's/^path=//p' "$HOME/tool.conf")

level=application operation=mixed buffer=on processes=1 journal=delete synchronous=full flush=''
transactions='' rows='' runtime_s=''
for word; do
	value=${word#*=}
	case $word in
	level=*) one_of level "$value" "application" ;;
	operation=*) one_of operation "$value" "mixed" ;;
	buffer=*) one_of buffer "$value" "on" ;;
	processes=*) number processes "$value" 1 1 ;;
	journal=*) one_of journal "$value" "delete wal" && journal=$value ;;
	synchronous=*) one_of synchronous "$value" "off normal full" && synchronous=$value ;;
	flush=*) one_of flush "$value" "none each" && flush=$value ;;
	transactions=*) number transactions "$value" 1 100000000 && transactions=$value ;;
	rows=*) number rows "$value" 1 100000000 && rows=$value ;;
	runtime_s=*) number runtime_s "$value" 0 86400 && runtime_s=$value ;;
	*) refuse "unknown factor '$word': known are level operation buffer processes journal synchronous" \
		"flush transactions rows runtime_s" ;;
	esac
done
# What SQLite does at a commit, by https://www.sqlite.org/pragma.html#pragma_synchronous.
case $journal.$synchronous in
*.off | wal.normal) means=none ;;
*) means=each ;;
esac
[ "${flush:-$means}" = "$means" ] ||
	refuse "flush=$flush: journal=$journal with synchronous=$synchronous is flush=$means"
transactions=${transactions:-$(preset_value transactions)}
rows=${rows:-$(preset_value rows)}
runtime_s=${runtime_s:-$(preset_value runtime_s)}
[ -n "$transactions" ] && [ -n "$rows" ] && [ -n "$runtime_s" ] ||
	refuse "EEIO_PRESET=$preset: not in $HOME/presets.conf"
