#!/bin/sh
# Outside the measured window: nothing but room, for bytes and for inodes. What a run that was killed
# left is removed.
# shellcheck disable=SC2015 # refuse leaves
# shellcheck source=factors.sh
. "$HOME/factors.sh"
enter "$scratch"
rm -rf eeio-metadata.*
# A file has an inode, an entry in a folder and whole blocks of data; a folder has a block.
folders=$((processes * rounds + rounds + 2)) created=$((processes * files * rounds))
inodes=$((created + folders))
needed=$((created * (512 + (size_bytes + 4095) / 4096 * 4096) + folders * 4096))
need_bytes "$needed"
need_inodes "$inodes"
# So that the caller can see what lies behind the files.
: >eeio-metadata.ready
