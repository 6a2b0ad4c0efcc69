#!/bin/sh
# Removes the files pre.sh wrote, unless EEIO_KEEP_FILES keeps them for further runs.
[ -n "${EEIO_KEEP_FILES:-}" ] && exit 0
tool=eeio-btio
# shellcheck source=scratch.sh
. "$HOME/scratch.sh"
[ -d "$scratch" ] || exit 0
prepared
rm -f eeio-btio.* btio.*.out*
left
exit 0
