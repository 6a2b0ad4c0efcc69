#!/bin/sh
# Outside the measured window: a folder with room. Bonnie++ writes what it reads.
# shellcheck disable=SC2015 # refuse leaves
# shellcheck source=factors.sh
. "$HOME/factors.sh"

enter "$scratch/eeio-bonnie"
rm -f Bonnie.* # left by a run that was killed
needed=$((size_mib * 1048576))
need_bytes "$needed"
