#!/bin/sh
# Outside the measured window: nothing but room, for bytes and for inodes. What a run that was killed
# left is removed.
# shellcheck disable=SC2015 # refuse leaves
# shellcheck source=factors.sh
. "$HOME/factors.sh"
mkdir -p "$scratch" 2>/dev/null && cd "$scratch" && [ -w . ] ||
	refuse "$scratch: cannot be written; give another directory"
rm -rf eeio-metadata.*
# A file has an inode, an entry in a folder and whole blocks of data; a folder has a block.
folders=$((processes * rounds + rounds + 2)) created=$((processes * files * rounds))
inodes=$((created + folders))
needed=$((created * (512 + (size + 4095) / 4096 * 4096) + folders * 4096))
free=$(df -Pk . | awk 'NR == 2 { printf "%.0f", $4 * 1024 }')
[ "$free" -gt "$needed" ] || refuse "$scratch: needs $needed bytes, $free are free"
# A file system that makes inodes as it goes (btrfs) tells 0 of 0.
free=$(df -Pi . | awk 'NR == 2 { print ($2 > 0 ? $4 : "any") }')
[ "$free" = any ] || [ "$free" -gt "$inodes" ] || refuse "$scratch: needs $inodes inodes, $free are free"
# So that the caller can see what lies behind the files.
: >eeio-metadata.ready
