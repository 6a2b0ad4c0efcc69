#!/bin/sh
# Outside the measured window: IOzone itself writes the files its reading tests will verify. Its
# sequential write starts from an empty file, so it needs room only. Files that are ready are kept.
# shellcheck disable=SC2015 # refuse leaves
# shellcheck source=factors.sh
. "$HOME/factors.sh"
iozone=$(sed -n 's/^path=//p' "$HOME/tool.conf")

mkdir -p "$scratch" 2>/dev/null && cd "$scratch" && [ -w . ] ||
	refuse "$scratch: cannot be written; give another directory"
if ! is_ready; then
	rm -f eeio-iozone.*
	needed=$((share_bytes * processes))
	free=$(df -Pk . | awk 'NR == 2 { printf "%.0f", $4 * 1024 }')
	[ "$free" -gt "$needed" ] || refuse "$scratch: needs $needed bytes, $free are free"
	[ "$test" = 0 ] && exit 0
	for file in $files; do
		"$iozone" -i 0 -+n -w -e -s $((share_bytes / 1024))k -r $((request_bytes / 1024))k -f "$file" >/dev/null &&
			[ "$(stat -c %s "$file")" = "$share_bytes" ] ||
			{ echo "eeio-iozone: prefilling $scratch/$file failed" >&2 && exit 1; }
	done
	echo "$marker" >eeio-iozone.ready
fi
# Reads start cold, as fio's --invalidate makes them; where the caller drops all caches this
# finds nothing to do.
for file in $files; do
	dd of="$file" oflag=nocache conv=notrunc,fdatasync count=0 2>/dev/null
done
exit 0
