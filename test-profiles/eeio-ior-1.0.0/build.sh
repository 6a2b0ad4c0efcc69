#!/bin/sh
# Makes IOR as PROGRAM of what FOLDER holds - upstream's release file, or a checkout of its repository
# in a folder of its own - else of upstream's release, which is fetched. For install.sh, scripts/setup
# and docker/Dockerfile. HDF5 is in it where pkg-config knows hdf5-openmpi. Ends with 3 where there is
# nothing to build it of, with 1 where what there is will not do.
set -eu
program=$1 folder=$2
version=3.3.0
archive=ior-$version.tar.gz
url=${EEIO_IOR_URL:-https://github.com/hpc/ior/releases/download/$version/$archive}
sha256=${EEIO_IOR_SHA256:-94df708a7b9dd804bbcaee24dbee76939ed572e8950c7c766aee7609d51e75e2}

fail() { # WHAT: what was wrong, and what to do
	echo "IOR: $*" >&2
	exit "${status:-1}"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
log=$program.log source=$work/source
mkdir -p "$source" "$(dirname "$program")"
: >"$log"

unpack() { # FILE
	echo "$sha256  $1" | sha256sum -c - >>"$log" 2>&1 ||
		fail "$1 is not upstream's release $version (wrong SHA-256): put the right one there"
	tar -xzf "$1" -C "$source" --strip-components=1
}

fetch() { # without a network it has seconds; a wrong file costs nothing but itself
	if command -v curl >/dev/null; then
		curl -fsSL --connect-timeout 5 --max-time 120 -o "$work/$archive" "$url"
	else
		wget -q --tries=1 --timeout=5 -O "$work/$archive" "$url"
	fi >>"$log" 2>&1
}

what='' bootstrap=no
for file in "$folder"/ior-*.tar.gz; do
	[ ! -f "$file" ] || { unpack "$file" && what=$file; }
done
for checkout in "$folder"/*/; do
	if [ -n "$what" ] || ! [ -f "$checkout/configure.ac" ]; then continue; fi
	# A copy: nothing is written into what belongs to the user.
	tar -C "$checkout" --exclude=./.git -cf - . | tar -xf - -C "$source" && what=$checkout bootstrap=yes
done
if [ -z "$what" ]; then
	fetch || status=3 fail "$url cannot be fetched: put it or a checkout of IOR into docker/ior/, or name one by EEIO_IOR"
	unpack "$work/$archive" && what=$url
fi

cd "$source"
if [ $bootstrap = yes ]; then
	for tool in autoreconf automake pkg-config; do
		command -v $tool >/dev/null || fail "$what: a checkout needs $tool: install autoconf, automake and pkg-config"
	done
	timeout 300 autoreconf -i >>"$log" 2>&1 || fail "$what cannot be configured: see $log"
fi
set --
if pkg-config --exists hdf5-openmpi 2>/dev/null; then
	set -- --with-hdf5 CPPFLAGS="$(pkg-config --cflags-only-I hdf5-openmpi)" LDFLAGS="$(pkg-config --libs-only-L hdf5-openmpi)"
fi
{ timeout 600 ./configure "$@" && timeout 900 make -j 2 -C src ior; } >>"$log" 2>&1 ||
	fail "$what cannot be built: see $log"
strip -o "$program.new" src/ior
mv "$program.new" "$program" # one that runs cannot be written over
