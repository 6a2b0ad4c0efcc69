#!/bin/sh
# Takes the IOR that EEIO_IOR, PATH or scripts/setup has, or builds one here (build.sh), and says
# which in tool.conf.
# shellcheck disable=SC2015 # finish leaves
profile=$(cd "${0%/*}" && pwd)

finish() { # STATUS [what to do]
	echo "$1" >"$HOME/install-exit-status"
	[ -z "${2:-}" ] || echo "eeio-ior: $2" >&2
	exit "$1"
}

cd "$HOME" || exit 1
cp "$profile/words.sh" "$profile/factors.sh" "$profile/mpi.sh" "$profile/mpi-io.sh" "$profile/presets.conf" . &&
	cp "$profile/eeio-ior.sh" eeio-ior && chmod +x eeio-ior ||
	finish 1 "$HOME: the profile's files could not be copied there"
path=$(command -v "${EEIO_IOR:-ior}") && source=system
[ -n "$path" ] || [ -z "${EEIO_IOR:-}" ] || finish 1 "EEIO_IOR=$EEIO_IOR: not a program"
# PTS has a link to the profile: the checkout is where that leads.
ours=$(cd "$profile" && cd "$(pwd -P)/../.." && pwd)/.venv/bin/ior
[ -n "$path" ] || [ ! -x "$ours" ] || path=$ours source=built
if [ -z "$path" ]; then
	# HOME: PTS lays a release file there that it has in its cache.
	said=$(sh "$profile/build.sh" "$HOME/ior" "$HOME" 2>&1) || finish 1 "${said:-IOR was not built}"
	path=$HOME/ior source=built
fi
# It knows no --version; the first line of its work tells, here of none, and in 3.x that of its help.
told=$({ "$path" -h; timeout 60 "$path" -a DUMMY -b 1k -t 1k; } </dev/null 2>&1 |
	sed -n 's/^IOR-\([^:]*\):.*/\1/p' | head -n 1)
{
	echo "path=$path"
	echo "version=${told:-unknown}"
	echo "sha256=$(sha256sum "$path" | cut -d' ' -f1)"
	echo "source=$source"
	# Its own list of interfaces tells whether HDF5 is among them.
	echo "apis=$("$path" -h 2>&1 | sed -n 's/.*API for I\/O \[\(.*\)\].*/\1/p' | head -n 1)"
	# With another value it is to be installed again.
	echo "EEIO_IOR=${EEIO_IOR:-}"
} >tool.conf
finish 0
