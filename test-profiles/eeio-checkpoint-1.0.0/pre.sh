#!/bin/sh
# Outside the measured window: nothing but room, for two generations. What a run that was killed left is
# removed.
# shellcheck disable=SC2015 # refuse leaves
# shellcheck source=factors.sh
. "$HOME/factors.sh"
enter "$scratch"
rm -f eeio-checkpoint.*
needed=$((2 * processes * (size_bytes + 8192)))
need_bytes "$needed"
# So that the caller can see what lies behind the files.
: >eeio-checkpoint.ready
