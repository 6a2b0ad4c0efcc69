# The factors of a run: checks the key=value arguments by factors.conf, and sets a variable for each factor, with
# NAME_bytes for a size and preset_KEY for each value of the preset. Sourced by a profile's scripts.
# shellcheck shell=sh disable=SC2034 # for the scripts
IFS='=' read -r _ tool <"$HOME/tool.conf" # its first line is name=NAME
preset=${EEIO_PRESET:-standard}
# shellcheck source=checks.sh
. "$HOME/checks.sh"
assignments=$(awk -f "$HOME/factors.awk" -- "$@") || refuse "$HOME/factors.conf: cannot be read"
eval "$assignments"
# shellcheck source=/dev/null
[ ! -f "$HOME/derived.sh" ] || . "$HOME/derived.sh"
