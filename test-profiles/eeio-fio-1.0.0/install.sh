#!/bin/sh
# Takes the system's fio, or builds upstream's release here, and says which in tool.conf.
# shellcheck disable=SC2015 # finish leaves
version=3.36
archive=fio-$version.tar.gz
url=https://brick.kernel.dk/snaps/$archive
sha256=0a07354876ca4d23518f8aa88682f23866455bbd2ff2d0f055d6e4b72f156553
profile=$(cd "${0%/*}" && pwd)

finish() { # STATUS [what to do]
	echo "$1" >"$HOME/install-exit-status"
	[ -z "${2:-}" ] || echo "eeio-fio: $2" >&2
	exit "$1"
}

build() {
	[ -f "$archive" ] || curl -fsSL --connect-timeout 10 --max-time 300 -o "$archive" "$url" ||
		wget -q --tries=1 --timeout=30 -O "$archive" "$url" || { rm -f "$archive" && return 1; }
	echo "$sha256  $archive" | sha256sum -c - ||
		finish 1 "$HOME/$archive is not upstream's release (wrong SHA-256): delete it and install again"
	tar -xzf "$archive" && cd "fio-$version" && ./configure --disable-native && timeout 900 make
}

cd "$HOME" || exit 1
cp "$profile/words.sh" "$profile/factors.sh" "$profile/target.sh" "$profile/load.sh" "$profile/presets.conf" . &&
	cp "$profile/eeio-fio.sh" eeio-fio && chmod +x eeio-fio ||
	finish 1 "$HOME: the profile's files could not be copied there"
path=$(command -v fio) && source=system
if [ -z "$path" ]; then
	(build) >build.log 2>&1
	path=$HOME/fio-$version/fio source=built
	[ -x "$path" ] || finish 1 "fio is missing and was not built (see $HOME/build.log): install the package fio"
fi
{
	echo "path=$path"
	echo "version=$("$path" --version)"
	echo "sha256=$(sha256sum "$path" | cut -d' ' -f1)"
	echo "source=$source"
} >tool.conf
finish 0
