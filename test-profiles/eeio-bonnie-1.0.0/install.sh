#!/bin/sh
# Takes the system's Bonnie++, or builds upstream's release here, and says which in tool.conf.
# shellcheck disable=SC2015 # finish leaves
version=2.00a
archive=bonnie++-$version.tgz
url=https://www.coker.com.au/bonnie++/$archive
sha256=a8d33bbd81bc7eb559ce5bf6e584b9b53faea39ccfb4ae92e58f27257e468f0e
profile=$(cd "${0%/*}" && pwd)

finish() { # STATUS [what to do]
	echo "$1" >"$HOME/install-exit-status"
	[ -z "${2:-}" ] || echo "eeio-bonnie: $2" >&2
	exit "$1"
}

build() {
	[ -f "$archive" ] || curl -fsSL --connect-timeout 10 --max-time 300 -o "$archive" "$url" ||
		wget -q --tries=1 --timeout=30 -O "$archive" "$url" || { rm -f "$archive" && return 1; }
	echo "$sha256  $archive" | sha256sum -c - ||
		finish 1 "$HOME/$archive is not upstream's release (wrong SHA-256): delete it and install again"
	mkdir -p source && tar -xzf "$archive" --strip-components=1 -C source && cd source &&
		./configure && timeout 600 make bonnie++
}

cd "$HOME" || exit 1
cp "$profile/words.sh" "$profile/factors.sh" "$profile/presets.conf" . &&
	cp "$profile/eeio-bonnie.sh" eeio-bonnie && chmod +x eeio-bonnie ||
	finish 1 "$HOME: the profile's files could not be copied there"
# Distributions put it where only root's PATH leads.
path=$(PATH=$PATH:/usr/sbin:/usr/local/sbin command -v bonnie++) && source=system
if [ -z "$path" ]; then
	(build) >build.log 2>&1
	path=$HOME/source/bonnie++ source=built
	[ -x "$path" ] || finish 1 "Bonnie++ is missing and was not built (see $HOME/build.log): install the package bonnie++"
fi
{
	echo "path=$path"
	echo "version=$("$path" -h 2>&1 | sed -n 's/^Version: *//p')"
	echo "sha256=$(sha256sum "$path" | cut -d' ' -f1)"
	echo "source=$source"
} >tool.conf
finish 0
