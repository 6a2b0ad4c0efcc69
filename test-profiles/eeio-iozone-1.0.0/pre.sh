#!/bin/sh
# Outside the measured window: IOzone itself writes the files its reading tests will verify. Its
# sequential write starts from an empty file, so it needs room only. Files that are ready are kept.
# shellcheck disable=SC2015,SC2086 # refuse exits; $files is a list
# shellcheck source=factors.sh
. "$HOME/factors.sh"
iozone=$(sed -n 's/^path=//p' "$HOME/tool.conf")

enter "$scratch"
if ! is_ready; then
	rm -f eeio-iozone.*
	needed=$((share_bytes * processes))
	need_bytes "$needed"
	[ "$test" = 0 ] && exit 0
	for file in $files; do
		"$iozone" -i 0 -+n -w -e -s $((share_bytes / 1024))k -r $((request_size_bytes / 1024))k -f "$file" >/dev/null &&
			[ "$(stat -c %s "$file")" = "$share_bytes" ] ||
			{ echo "eeio-iozone: prefilling $scratch/$file failed" >&2 && exit 1; }
	done
	echo "$marker" >eeio-iozone.ready
fi
drop_cached $files
exit 0
