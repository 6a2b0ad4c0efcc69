#!/bin/sh
# Outside the measured window: the tree, and for action=untar its archive; what a run has left is removed.
# shellcheck disable=SC2015 # refuse leaves
# shellcheck source=factors.sh
. "$HOME/factors.sh"
enter "$scratch"
rm -rf eeio-archive.out eeio-archive.tar*
if [ "$copy" = reflink ]; then
	echo >eeio-archive.from
	cp --reflink=always eeio-archive.from eeio-archive.to 2>/dev/null && reflinks=yes || reflinks=no
	rm -f eeio-archive.from eeio-archive.to
	[ "$reflinks" = yes ] || refuse "copy=reflink: no reflinks in the file system of $scratch; use xfs or btrfs"
fi
if [ "$(cat eeio-archive.ready 2>/dev/null)" != "$files" ]; then
	rm -rf eeio-archive.*
	# Tree and copy: 10 KiB in the mean, in whole blocks, with an inode.
	needed=$((files * 32768))
	need_bytes "$needed"
	"$python" -I -S "$HOME/workload.py" grow directory=. files="$files" || exit
	echo "$files" >eeio-archive.ready
fi
exec "$python" -I -S "$HOME/workload.py" cool directory=. action="$action"
