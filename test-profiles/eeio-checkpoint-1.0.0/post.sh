#!/bin/sh
# Removes the checkpoints, unless they are to serve further runs.
[ -n "${EEIO_KEEP_FILES:-}" ] && exit 0
scratch=${EEIO_DIRECTORY:-$HOME/scratch}/eeio-scratch
rm -f "$scratch"/eeio-checkpoint.*
rmdir "$scratch" 2>/dev/null
exit 0
