#!/bin/sh
# Outside the measured window: the tree with its files, anew for each run, since a run changes it. What
# a run that was killed left is removed.
# shellcheck disable=SC2015 # refuse leaves
# shellcheck source=factors.sh
. "$HOME/factors.sh"
mkdir -p "$scratch" 2>/dev/null && cd "$scratch" && [ -w . ] ||
	refuse "$scratch: cannot be written; give another directory"
rm -rf eeio-varmail.*
# A file that is there has in the mean its first size or two appends, in whole blocks, and an inode.
largest=$((size > 2 * append ? size : 2 * append))
needed=$((files * (largest + 8192)))
free=$(df -Pk . | awk 'NR == 2 { printf "%.0f", $4 * 1024 }')
[ "$free" -gt "$needed" ] || refuse "$scratch: needs $needed bytes, $free are free"
# A file system that makes inodes as it goes (btrfs) tells 0 of 0.
inodes=$((files + files / 100 + processes + 3))
free=$(df -Pi . | awk 'NR == 2 { print ($2 > 0 ? $4 : "any") }')
[ "$free" = any ] || [ "$free" -gt "$inodes" ] || refuse "$scratch: needs $inodes inodes, $free are free"
"$HOME/varmail" fill ranks="$processes" files="$files" size="$size" directory="$scratch" || exit
echo "$processes $files" >eeio-varmail.ready
