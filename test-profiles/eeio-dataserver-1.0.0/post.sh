#!/bin/sh
# Removes the files pre.sh wrote, unless EEIO_KEEP_FILES keeps them for further runs.
[ -n "${EEIO_KEEP_FILES:-}" ] && exit 0
tool=eeio-dataserver
# shellcheck source=scratch.sh
. "$HOME/scratch.sh"
rm -f "$HOME/load.max"
[ -d "$scratch" ] || exit 0
prepared
rm -f eeio-dataserver.*
left
exit 0
