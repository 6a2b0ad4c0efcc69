# Variables that follow from the factors. For factors.sh.
# shellcheck shell=sh disable=SC2034 # for the scripts
python=$(sed -n 's/^python=//p' "$HOME/tool.conf")
program=$(sed -n 's/^path=//p' "$HOME/tool.conf")
folder=$scratch/eeio-mariadb.data
workload() { "$python" -E -s -S -B "$HOME/workload.py" "$@"; }
