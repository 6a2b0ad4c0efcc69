#!/bin/sh
# Takes the system's IOzone, or builds upstream's release here, and says which in tool.conf.
# shellcheck disable=SC2015,SC2016 # finish leaves; the $ in a sed script is its own
version=3_465
archive=iozone$version.tar
url=http://www.iozone.org/src/current/$archive
sha256=2e3d72916e7d7340a7c505fc0c3d28553fcc5ff2daf41d811368e55bd4e6a293
profile=$(cd "${0%/*}" && pwd)

finish() { # STATUS [what to do]
	echo "$1" >"$HOME/install-exit-status"
	[ -z "${2:-}" ] || echo "eeio-iozone: $2" >&2
	exit "$1"
}

build() {
	[ -f "$archive" ] || curl -fsSL --connect-timeout 10 --max-time 300 -o "$archive" "$url" ||
		wget -q --tries=1 --timeout=30 -O "$archive" "$url" || { rm -f "$archive" && return 1; }
	echo "$sha256  $archive" | sha256sum -c - ||
		finish 1 "$HOME/$archive is not upstream's release (wrong SHA-256): delete it and install again"
	case $(uname -m) in
	x86_64) target=linux-AMD64 ;;
	arm*) target=linux-arm ;;
	*) target=linux ;;
	esac
	# -fcommon: its sources define globals twice, which compilers refuse since GCC 10.
	tar -xf "$archive" && cd "iozone$version/src/current" &&
		timeout 600 make "$target" CC="cc -fcommon" GCC="gcc -fcommon"
}

cd "$HOME" || exit 1
cp "$profile/words.sh" "$profile/factors.sh" "$profile/presets.conf" . &&
	cp "$profile/eeio-iozone.sh" eeio-iozone && chmod +x eeio-iozone ||
	finish 1 "$HOME: the profile's files could not be copied there"
path=$(command -v iozone) && source=system
if [ -z "$path" ]; then
	(build) >build.log 2>&1
	path=$HOME/iozone$version/src/current/iozone source=built
	[ -x "$path" ] || finish 1 "IOzone is missing and was not built (see $HOME/build.log): install the package iozone3 (Debian: in non-free)"
fi
{
	echo "path=$path"
	echo "version=$("$path" -v | sed -n 's/.*Version $Revision: \([0-9.]*\) .*/\1/p')"
	echo "sha256=$(sha256sum "$path" | cut -d' ' -f1)"
	echo "source=$source"
} >tool.conf
finish 0
