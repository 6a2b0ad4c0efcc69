#!/bin/sh
# Removes the profile's test files, unless EEIO_KEEP_FILES keeps them for further runs.
[ -n "${EEIO_KEEP_FILES:-}" ] && exit 0
tool=$(sed -n 's/^name=//p' "$HOME/tool.conf")
# shellcheck source=scratch.sh
. "$HOME/scratch.sh"
[ -d "$scratch" ] || exit 0
prepared
rm -rf "${tool:?}" "$tool".*
left
exit 0
