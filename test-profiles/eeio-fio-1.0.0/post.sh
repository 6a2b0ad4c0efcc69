#!/bin/sh
# Removes the files pre.sh wrote, unless EEIO_KEEP_FILES keeps them for further runs.
[ -n "${EEIO_KEEP_FILES:-}" ] && exit 0
tool=eeio-fio
# shellcheck source=scratch.sh
. "$HOME/scratch.sh"
# Who uses the device next may empty it, and nothing here would tell.
rm -f "$HOME/device.ready" "$HOME/load.max"
[ -d "$scratch" ] || exit 0
prepared
rm -f eeio-fio.*
left
exit 0
