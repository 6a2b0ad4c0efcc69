#!/bin/sh
# Takes the system's IOR (EEIO_IOR or PATH), or builds upstream's release here, and says which in
# tool.conf.
# shellcheck disable=SC2015 # finish leaves
version=3.3.0
archive=ior-$version.tar.gz
url=https://github.com/hpc/ior/releases/download/$version/$archive
sha256=94df708a7b9dd804bbcaee24dbee76939ed572e8950c7c766aee7609d51e75e2
profile=$(cd "${0%/*}" && pwd)

finish() { # STATUS [what to do]
	echo "$1" >"$HOME/install-exit-status"
	[ -z "${2:-}" ] || echo "eeio-ior: $2" >&2
	exit "$1"
}

build() {
	[ -f "$archive" ] || curl -fsSL --connect-timeout 10 --max-time 300 -o "$archive" "$url" ||
		wget -q --tries=1 --timeout=30 -O "$archive" "$url" || { rm -f "$archive" && return 1; }
	echo "$sha256  $archive" | sha256sum -c - ||
		finish 1 "$HOME/$archive is not upstream's release (wrong SHA-256): delete it and install again"
	tar -xzf "$archive" && cd "ior-$version" && ./configure && timeout 900 make
}

cd "$HOME" || exit 1
cp "$profile/words.sh" "$profile/factors.sh" "$profile/mpi.sh" "$profile/mpi-io.sh" "$profile/presets.conf" . &&
	cp "$profile/eeio-ior.sh" eeio-ior && chmod +x eeio-ior ||
	finish 1 "$HOME: the profile's files could not be copied there"
path=$(command -v "${EEIO_IOR:-ior}") && source=system
[ -n "$path" ] || [ -z "${EEIO_IOR:-}" ] || finish 1 "EEIO_IOR=$EEIO_IOR: not a program"
if [ -z "$path" ]; then
	(build) >build.log 2>&1
	path=$HOME/ior-$version/src/ior source=built
	[ -x "$path" ] || finish 1 "IOR is missing and was not built (see $HOME/build.log): put ior into PATH (a module, Spack) or name it by EEIO_IOR"
fi
# It knows no --version; the first line of its work tells, here of none, and in 3.x that of its help.
told=$({ "$path" -h; timeout 60 "$path" -a DUMMY -b 1k -t 1k; } </dev/null 2>&1 |
	sed -n 's/^IOR-\([^:]*\):.*/\1/p' | head -n 1)
{
	echo "path=$path"
	echo "version=${told:-unknown}"
	echo "sha256=$(sha256sum "$path" | cut -d' ' -f1)"
	echo "source=$source"
	# With another value it is to be installed again.
	echo "EEIO_IOR=${EEIO_IOR:-}"
} >tool.conf
finish 0
