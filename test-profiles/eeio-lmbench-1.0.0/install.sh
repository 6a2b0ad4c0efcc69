#!/bin/sh
# Takes the system's lmbench, or builds upstream's release here, and says which in tool.conf.
# shellcheck disable=SC2015 # finish leaves
version=3.0-a9
archive=lmbench-$version.tgz
url=https://downloads.sourceforge.net/project/lmbench/development/lmbench-$version/$archive
sha256=cbd5777d15f44eab7666dcac418054c3c09df99826961a397d9acf43d8a2a551
profile=$(cd "${0%/*}" && pwd)

finish() { # STATUS [what to do]
	echo "$1" >"$HOME/install-exit-status"
	[ -z "${2:-}" ] || echo "eeio-lmbench: $2" >&2
	exit "$1"
}

build() {
	[ -f "$archive" ] || curl -fsSL --connect-timeout 10 --max-time 300 -o "$archive" "$url" ||
		wget -q --tries=1 --timeout=30 -O "$archive" "$url" || { rm -f "$archive" && return 1; }
	echo "$sha256  $archive" | sha256sum -c - ||
		finish 1 "$HOME/$archive is not upstream's release (wrong SHA-256): delete it and install again"
	# Only the programs that the wrapper calls. Its common header asks for RPC's, which moved.
	mkdir -p source/bin/here && tar -xzf "$archive" --strip-components=1 -C source && cd source/src &&
		for program in bw_mem lat_mem_rd lat_syscall lat_fs; do
			timeout 300 make OS=here CC="cc -std=gnu89 -fcommon -w -I/usr/include/tirpc" \
				"../bin/here/$program" || return 1
		done
}

cd "$HOME" || exit 1
cp "$profile/words.sh" "$profile/factors.sh" "$profile/presets.conf" . &&
	cp "$profile/eeio-lmbench.sh" eeio-lmbench && chmod +x eeio-lmbench ||
	finish 1 "$HOME: the profile's files could not be copied there"
# Distributions keep it out of PATH, in a folder a machine type.
for directory in /usr/lib/lmbench/bin/* "${EEIO_LMBENCH_BIN:-}"; do
	[ -x "$directory/lat_fs" ] && [ -x "$directory/bw_mem" ] && path=$directory source=system
done
if [ -z "${path:-}" ]; then
	(build) >build.log 2>&1
	path=$HOME/source/bin/here source=built
	[ -x "$path/lat_fs" ] ||
		finish 1 "lmbench is missing and was not built (see $HOME/build.log): install the package lmbench (Debian: in non-free)"
fi
package=$(dpkg-query -W -f '${Version}' lmbench 2>/dev/null)
{
	echo "path=$path/bw_mem"
	echo "directory=$path"
	echo "version=${package:-$version}"
	echo "sha256=$(sha256sum "$path/bw_mem" | cut -d' ' -f1)"
	echo "source=$source"
	# With another value it is to be installed again.
	echo "EEIO_LMBENCH_BIN=${EEIO_LMBENCH_BIN:-}"
} >tool.conf
finish 0
