# Variables that follow from the factors. For factors.sh.
# shellcheck shell=sh disable=SC2034 # for the scripts
python=$(sed -n 's/^python=//p' "$HOME/tool.conf")
db_bench=$(sed -n 's/^path=//p' "$HOME/tool.conf")
