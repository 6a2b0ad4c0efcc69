#!/bin/sh
# Takes the SQLite of the interpreter that EEIO_PYTHON names, else of python3, and says which in tool.conf.
# shellcheck disable=SC2015 # finish leaves
profile=$(cd "${0%/*}" && pwd)

finish() { # STATUS [what to do]
	echo "$1" >"$HOME/install-exit-status"
	[ -z "${2:-}" ] || echo "eeio-sqlite: $2" >&2
	exit "$1"
}

cd "$HOME" || exit 1
cp "$profile/words.sh" "$profile/factors.sh" "$profile/presets.conf" "$profile/workload.py" . &&
	cp "$profile/eeio-sqlite.sh" eeio-sqlite && chmod +x eeio-sqlite ||
	finish 1 "$HOME: the profile's files could not be copied there"
python=$(command -v "${EEIO_PYTHON:-python3}") ||
	finish 1 "${EEIO_PYTHON:-python3} is missing: install the package python3, or name one by EEIO_PYTHON"
version=$("$python" -I -S workload.py version 2>/dev/null) ||
	finish 1 "$python has no module sqlite3: install the package python3, or name another by EEIO_PYTHON"
{
	echo "path=$python"
	echo "version=$version"
	echo "sha256=$(sha256sum "$python" | cut -d' ' -f1)"
	echo "source=system"
	# Another interpreter may have another SQLite.
	[ -z "${EEIO_PYTHON:-}" ] || echo "EEIO_PYTHON=$EEIO_PYTHON"
} >tool.conf
finish 0
