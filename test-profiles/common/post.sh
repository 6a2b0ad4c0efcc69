#!/bin/sh
# Removes the profile's test files, unless EEIO_KEEP_FILES keeps them for further runs.
[ -n "${EEIO_KEEP_FILES:-}" ] && exit 0
name=$(sed -n 's/^name=//p' "$HOME/tool.conf")
scratch=${EEIO_DIRECTORY:-$HOME/scratch}/eeio-scratch
rm -rf "$scratch/${name:?}" "$scratch/$name".*
rmdir "$scratch" 2>/dev/null
exit 0
