#!/bin/sh
# Takes the system's tar; rsync and zstd are looked for when they are asked for. tool.conf tells them.
# shellcheck disable=SC2015 # finish leaves
profile=$(cd "${0%/*}" && pwd)

finish() { # STATUS [what to do]
	echo "$1" >"$HOME/install-exit-status"
	[ -z "${2:-}" ] || echo "eeio-archive: $2" >&2
	exit "$1"
}

cd "$HOME" || exit 1
cp "$profile/words.sh" "$profile/factors.sh" "$profile/presets.conf" "$profile/workload.py" . &&
	cp "$profile/eeio-archive.sh" eeio-archive && chmod +x eeio-archive ||
	finish 1 "$HOME: the profile's files could not be copied there"
path=$(command -v tar) || finish 1 "tar is missing: install the package tar"
python=$(command -v "${EEIO_PYTHON:-python3}") ||
	finish 1 "${EEIO_PYTHON:-python3} is missing: install the package python3, or name one by EEIO_PYTHON"
{
	echo "path=$path"
	echo "version=$("$path" --version | head -n 1)"
	echo "sha256=$(sha256sum "$path" | cut -d' ' -f1)"
	echo "source=system"
	echo "python=$python"
} >tool.conf
finish 0
