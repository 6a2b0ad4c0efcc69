#!/bin/sh
# Removes the profile's test files, unless EEIO_KEEP_FILES keeps them for further runs.
[ -n "${EEIO_KEEP_FILES:-}" ] && exit 0
# shellcheck source=scratch.sh
. "$HOME/scratch.sh"
tool=$(sed -n 's/^name=//p' "$HOME/tool.conf")
[ -d "$scratch" ] || exit 0
prepared
rm -rf "${tool:?}" "$tool".*
left
exit 0
