#!/bin/sh
# Takes the PostgreSQL of EEIO_POSTGRESQL_BIN, that of PATH, or Debian's newest, and says which in tool.conf.
# shellcheck disable=SC2015 # finish leaves
profile=$(cd "${0%/*}" && pwd)

finish() { # STATUS [what to do]
	echo "$1" >"$HOME/install-exit-status"
	[ -z "${2:-}" ] || echo "eeio-postgresql: $2" >&2
	exit "$1"
}

cd "$HOME" || exit 1
cp "$profile/words.sh" "$profile/factors.sh" "$profile/presets.conf" "$profile/workload.py" \
	"$profile/server.py" . &&
	cp "$profile/eeio-postgresql.sh" eeio-postgresql && chmod +x eeio-postgresql ||
	finish 1 "$HOME: the profile's files could not be copied there"
python=$(command -v "${EEIO_PYTHON:-python3}") ||
	finish 1 "${EEIO_PYTHON:-python3} is missing: install the package python3, or name one by EEIO_PYTHON"
# Debian's are not in PATH.
found=$(command -v postgres || printf '%s\n' /usr/lib/postgresql/*/bin/postgres | sort -t/ -k5n | tail -n 1)
path=${EEIO_POSTGRESQL_BIN:+$EEIO_POSTGRESQL_BIN/postgres}
path=${path:-$found}
programs=$(readlink -f "$path" || echo "$path") # one in PATH may be a link to it
programs=${programs%/postgres}
for name in postgres initdb pgbench psql pg_isready; do
	[ -x "$programs/$name" ] ||
		finish 1 "$programs/$name is missing: install the package postgresql, or name the folder of its programs by EEIO_POSTGRESQL_BIN"
done
version=$("$path" --version 2>/dev/null)
major=$(echo "$version" | sed -n 's/^postgres (PostgreSQL) \([0-9][0-9]*\).*/\1/p')
[ "${major:-0}" -ge 12 ] ||
	finish 1 "$path: is '$version': install PostgreSQL 12 or newer, or name its folder by EEIO_POSTGRESQL_BIN"
{
	echo "path=$path"
	echo "programs=$programs"
	echo "version=$version"
	echo "sha256=$(sha256sum "$path" | cut -d' ' -f1)"
	echo "source=system"
	echo "python=$python"
	echo "EEIO_POSTGRESQL_BIN=${EEIO_POSTGRESQL_BIN:-}"
} >tool.conf
finish 0
