# Variables that follow from the factors. For factors.sh.
# shellcheck shell=sh disable=SC2034 # for the scripts
python=$(sed -n 's/^python=//p' "$HOME/tool.conf")
programs=$(sed -n 's/^programs=//p' "$HOME/tool.conf")
folder=$scratch/eeio-postgresql.data
workload() { "$python" -E -s -S -B "$HOME/workload.py" "$@"; }
