#!/bin/sh
# Outside the measured window: the tree with its files, anew for each run, since a run changes it. What
# a run that was killed left is removed.
# shellcheck disable=SC2015 # refuse leaves
# shellcheck source=factors.sh
. "$HOME/factors.sh"
enter "$scratch"
rm -rf eeio-varmail.*
# A file that is there has in the mean its first size or two appends, in whole blocks, and an inode.
largest=$((size_bytes > 2 * append_bytes ? size_bytes : 2 * append_bytes))
needed=$((files * (largest + 8192)))
need_bytes "$needed"
inodes=$((files + files / 100 + processes + 3))
need_inodes "$inodes"
"$HOME/varmail" fill ranks="$processes" files="$files" size="$size_bytes" directory=. || exit
echo "$processes $files" >eeio-varmail.ready
